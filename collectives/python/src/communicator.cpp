// The communicator itself: how it is made, its groups and its state.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <mutex>

#include "collectives/engine/engine.h"
#include "collectives/python/src/module.h"
#include "transports/rendezvous.h"

namespace kolo::python {

namespace {

using namespace nb::literals;
using SharedWorld = std::shared_ptr<World>;

// The start of a communicator, which another thread may interrupt.
class Start {
 public:
  Start(std::optional<int> rank, int size, std::shared_ptr<Store> store,
        const CommunicatorOptions& options)
      : options_(validated_options(options)), rank_(rank.value_or(0)), size_(size) {
    if (rank) store_ = std::move(store);
  }

  // Takes rank, size and store from the launcher's environment.
  void meet() {
    const LaunchEnvironment who = launch_environment();
    auto store = store_from_environment(who, Clock::now() + options_.timeout);
    const std::lock_guard lock(mutex_);
    rank_ = who.rank;
    size_ = who.size;
    store_ = std::move(store);
    if (is_interrupted_) tell_all();
  }

  Communicator run() { return {rank_, size_, store_, options_}; }

  // Ends the start on all ranks, as soon as the store can be reached.
  void interrupt() {
    const std::lock_guard lock(mutex_);
    is_interrupted_ = true;
    if (store_) tell_all();
  }

 private:
  void tell_all() { store_->post_failure("rank " + std::to_string(rank_) + ": " + kInterrupted); }

  CommunicatorOptions options_;
  int rank_;
  int size_;
  std::mutex mutex_;
  bool is_interrupted_ = false;
  std::shared_ptr<Store> store_;
};

SharedWorld create(std::optional<int> rank, int size, std::shared_ptr<Store> store,
                   const std::string& transport, const std::string& name, double timeout,
                   std::size_t segment_bytes, const std::string& host_id, bool progress_thread,
                   Reproducibility reproducibility, const std::string& tuning, bool profile,
                   const std::string& timeline) {
  CommunicatorOptions options;
  options.transport = transport;
  options.name = name;
  options.timeout = milliseconds_of(std::chrono::duration<double>(timeout));
  options.segment_bytes = segment_bytes;
  options.host_id = host_id;
  options.progress_thread = progress_thread;
  options.reproducibility = reproducibility;
  options.tuning = tuning;
  options.profile = profile;
  options.timeline = timeline;
  if (rank && store == nullptr) throw std::invalid_argument("the store is None");
  const auto start = std::make_shared<Start>(rank, size, std::move(store), options);
  if (!rank) {
    try {
      run_or_leave([start] { start->meet(); });
    } catch (const nb::python_error&) {
      const nb::gil_scoped_release no_gil;
      start->interrupt();
      throw;
    }
  }
  std::optional<Communicator> made;
  run_interruptibly([&] { made.emplace(start->run()); }, [&] { start->interrupt(); });
  return std::make_shared<World>(*std::move(made));
}

// Makes a group. An interrupt aborts the job, as the other members cannot go on without this rank.
SharedWorld make_group(const SharedWorld& self,
                       const std::function<std::optional<Communicator>(Communicator&)>& make_one) {
  const auto communicator = self->held();
  std::optional<Communicator> made;
  run_interruptibly([&] { made = make_one(*communicator); },
                    [&] { communicator->abort(kInterrupted); });
  return made ? std::make_shared<World>(*std::move(made)) : nullptr;
}

void abort(const SharedWorld& self, const std::string& reason) {
  ask(self, [&](Communicator& world) { world.abort(reason); });
}

nb::any failure(const SharedWorld& self) {
  const auto found = ask(self, [](Communicator& world) { return world.failure(); });
  return nb::borrow<nb::any>(error_object(found ? &*found : nullptr));
}

nb::any allocate(const SharedWorld& self, std::size_t bytes) {
  auto memory = std::make_unique<std::shared_ptr<std::byte[]>>(
      ask(self, [&](Communicator& world) { return world.allocate(bytes); }));
  void* const address = memory->get();
  const nb::capsule owner(memory.release(), [](void* held) noexcept {
    const std::unique_ptr<std::shared_ptr<std::byte[]>> freed(
        static_cast<std::shared_ptr<std::byte[]>*>(held));
  });
  const std::size_t shape[] = {bytes};
  const nb::ndarray<nb::numpy, std::uint8_t> made(address, 1, shape, owner);
  return nb::borrow<nb::any>(nb::cast(made));
}

}  // namespace

void bind_communicator(WorldClass& world) {
  world.def_static("create", create, "rank"_a.none(), "size"_a, "store"_a.none(), "transport"_a,
                   "name"_a, "timeout"_a, "segment_bytes"_a, "host_id"_a, "progress_thread"_a,
                   "reproducibility"_a, "tuning"_a, "profile"_a, "timeline"_a);
  world.def("close", &World::close)
      .def("rank", [](const SharedWorld& self) { return self->held()->rank(); })
      .def("size", [](const SharedWorld& self) { return self->held()->size(); })
      .def("name", [](const SharedWorld& self) { return std::string(self->held()->name()); })
      .def("transport",
           [](const SharedWorld& self) { return std::string(self->held()->transport()); })
      .def("carrier", [](const SharedWorld& self) { return self->held()->carrier(); })
      .def("timeout",
           [](const SharedWorld& self) {
             return std::chrono::duration<double>(self->held()->timeout()).count();
           })
      .def("hosts",
           [](const SharedWorld& self) {
             const auto communicator = self->held();
             const auto hosts = communicator->hosts();
             return std::vector<int>(hosts.begin(), hosts.end());
           })
      .def("job_rank",
           [](const SharedWorld& self, int rank) { return self->held()->job_rank(rank); })
      .def("split",
           [](const SharedWorld& self, int color, int key) {
             return make_group(self, [&](Communicator& made) { return made.split(color, key); });
           })
      .def("duplicate",
           [](const SharedWorld& self) {
             return make_group(self, [](Communicator& made) { return made.duplicate(); });
           })
      .def("subset",
           [](const SharedWorld& self, const std::vector<int>& ranks) {
             return make_group(self, [&](Communicator& made) { return made.subset(ranks); });
           })
      .def("progress",
           [](const SharedWorld& self) {
             return ask(self, [](Communicator& one) { return one.progress(); });
           })
      .def("descriptor",
           [](const SharedWorld& self) {
             return ask(self, [](Communicator& one) { return one.descriptor(); });
           })
      .def("abort", abort)
      .def("failure", failure)
      .def("allocate", allocate);
}

}  // namespace kolo::python
