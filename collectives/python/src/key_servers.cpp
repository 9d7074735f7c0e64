// Key servers: parameter servers over messages.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <map>
#include <tuple>

#include "collectives/key_server.h"
#include "collectives/python/src/module.h"

namespace kolo::python {

namespace {

using namespace nb::literals;
using SharedWorld = std::shared_ptr<World>;
using Range = std::pair<std::size_t, std::vector<std::size_t>>;  // first element, shares

KeyPlan plan_of(const std::vector<Range>& given, const std::vector<int>& servers,
                std::size_t longest) {
  std::vector<KeyRange> ranges;
  ranges.reserve(given.size());
  for (const auto& [first, shares] : given) ranges.push_back({first, shares});
  return plan_keys(ranges, servers, longest);
}

std::span<float> floats_of(const Array& array) {
  const Buffer buffer = array.buffer();
  if (buffer.type != ElementType::kFloat32)
    throw nb::type_error("parameters and gradients of key servers are float32");
  return {static_cast<float*>(buffer.data), buffer.count};
}

nb::object view_of(std::span<float> floats) {
  return memoryview_of(floats.data(), floats.size(), ElementType::kFloat32, true);
}

nb::dict dict_of(const KeyServerStatistics& counted) {
  nb::dict made;
  made["gradients"] = counted.gradients;
  made["dropped"] = counted.dropped;
  made["updates"] = counted.updates;
  made["answers"] = counted.answers;
  made["staleness"] = nb::cast(counted.staleness);
  made["lead"] = nb::cast(counted.lead);
  made["idle_seconds"] = counted.idle_seconds;
  return made;
}

KeyUpdateFunction function_of(nb::object update) {
  return [function = make_function(std::move(update))](const KeyUpdate& one) {
    call_python([&] {
      (*function)(one.key, one.iteration, view_of(one.values), view_of(one.gradient), one.samples,
                  one.gradients, one.worker);
    });
  };
}

void interrupt(Communicator& communicator) { communicator.abort(kInterrupted); }

nb::dict serve(const SharedWorld& world, const KeyPlan& plan, nb::handle values, nb::object update,
               Consistency::Kind kind, int bound, std::int64_t first_iteration, double timeout) {
  const auto communicator = world->held();
  const Array arena(values, Access::kWrite, "the values");
  const std::span<float> floats = floats_of(arena);
  const KeyUpdateFunction function = function_of(std::move(update));
  KeyServerOptions options;
  options.consistency = {kind, bound};
  options.first_iteration = first_iteration;
  options.timeout = milliseconds_of(std::chrono::duration<double>(timeout));
  KeyServerStatistics counted;
  run_interruptibly([&] { counted = serve_keys(*communicator, plan, floats, function, options); },
                    [&] { interrupt(*communicator); });
  return dict_of(counted);
}

// A client, with the arrays that its requests borrow.
class Client {
 public:
  Client(const SharedWorld& world, const KeyPlan& plan, double timeout)
      : communicator_(world->held()),
        client_(std::make_unique<KeyClient>(
            *communicator_, plan, milliseconds_of(std::chrono::duration<double>(timeout)))) {}
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  ~Client() {
    const nb::gil_scoped_release no_gil;
    client_.reset();
  }

  void push(std::size_t key, std::int64_t iteration, nb::handle gradient, double samples) {
    request(
        key, Array(gradient, Access::kRead, "the gradient"), Array(),
        [&](std::span<float> in, std::span<float>) { client_->push(key, iteration, in, samples); });
  }
  void pull(std::size_t key, nb::handle values) {
    request(key, Array(), Array(values, Access::kWrite, "the values"),
            [&](std::span<float>, std::span<float> out) { client_->pull(key, out); });
  }
  void push_pull(std::size_t key, std::int64_t iteration, nb::handle gradient, double samples,
                 nb::handle values) {
    request(key, Array(gradient, Access::kRead, "the gradient"),
            Array(values, Access::kWrite, "the values"),
            [&](std::span<float> in, std::span<float> out) {
              client_->push_pull(key, iteration, in, samples, out);
            });
  }
  bool test(std::size_t key) {
    bool is_done = false;
    {
      const nb::gil_scoped_release no_gil;
      is_done = client_->test(key);
    }
    if (is_done) borrowed_.erase(key);
    return is_done;
  }
  void wait(std::size_t key) {
    if (test(key)) return;
    wait_for([&] { client_->wait(key); });
    borrowed_.erase(key);
  }
  void wait_all() {
    wait_for([&] { client_->wait_all(); });
    borrowed_.clear();
  }
  void finish() {
    wait_for([&] { client_->finish(); });
    borrowed_.clear();
  }
  std::int64_t next_iteration() const { return client_->next_iteration(); }
  nb::dict statistics() const {
    const KeyClientStatistics counted = client_->statistics();
    nb::dict made;
    made["pushes"] = counted.pushes;
    made["answers"] = counted.answers;
    made["waiting_seconds"] = counted.waiting_seconds;
    return made;
  }

 private:
  using Issue = std::function<void(std::span<float> in, std::span<float> out)>;

  void request(std::size_t key, Array in, Array out, const Issue& issue) {
    const std::span<float> from = floats_of(in), to = floats_of(out);
    {
      const nb::gil_scoped_release no_gil;
      issue(from, to);
    }
    borrowed_.insert_or_assign(key, std::pair(std::move(in), std::move(out)));
  }
  void wait_for(const std::function<void()>& body) {
    run_interruptibly(body, [&] { interrupt(*communicator_); });
  }

  // Before the client, which may use their memory until it ends.
  std::map<std::size_t, std::pair<Array, Array>> borrowed_;
  std::shared_ptr<Communicator> communicator_;
  std::unique_ptr<KeyClient> client_;
};

constexpr const char* kPlanText =
    "Which server holds which part of the parameters; made by plan_keys(), the same on every rank.";

}  // namespace

void bind_key_servers(nb::module_& module) {
  nb::enum_<Consistency::Kind>(module, "Consistency",
                               "When a key's gradients are applied and its pulls are answered.")
      .value("SYNCHRONOUS", Consistency::Kind::kSynchronous,
             "All workers' gradients of an iteration are summed and applied once.")
      .value("ASYNCHRONOUS", Consistency::Kind::kAsynchronous,
             "Each gradient is applied when it has arrived.")
      .value("BOUNDED", Consistency::Kind::kBounded,
             "The same; a worker is at most `bound` iterations ahead of the slowest.")
      .value("BACKUP", Consistency::Kind::kBackup,
             "An iteration ends without its last `bound` gradients.");
  nb::class_<KeyPlan>(module, "KeyPlan", kPlanText)
      .def_ro("elements", &KeyPlan::elements)
      .def_ro("servers", &KeyPlan::servers)
      .def_prop_ro("keys", [](const KeyPlan& self) {
        std::vector<std::tuple<std::size_t, std::size_t, int>> made;
        for (const Key& key : self.keys) made.emplace_back(key.first, key.count, key.server);
        return nb::cast(made);
      });
  module.def("plan_keys", plan_of, "ranges"_a, "servers"_a, "longest"_a);
  module.def("serve_keys", serve, "world"_a, "plan"_a, "values"_a, "update"_a, "kind"_a, "bound"_a,
             "first_iteration"_a, "timeout"_a);
  nb::class_<Client>(module, "KeyClient")
      .def(nb::init<const SharedWorld&, const KeyPlan&, double>(), "world"_a, "plan"_a, "timeout"_a)
      .def("push", &Client::push)
      .def("pull", &Client::pull)
      .def("push_pull", &Client::push_pull)
      .def("test", &Client::test)
      .def("wait", &Client::wait)
      .def("wait_all", &Client::wait_all)
      .def("finish", &Client::finish)
      .def("next_iteration", &Client::next_iteration)
      .def("statistics", &Client::statistics);
}

}  // namespace kolo::python
