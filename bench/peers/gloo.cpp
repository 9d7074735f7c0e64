// gloo over its TCP transport, as its users run it: a device with its own thread, one context, the
// options of its newer interface. Ranks find each other through the benchmark's store.
#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/alltoall.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/config.h>
#include <gloo/gather.h>
#include <gloo/reduce.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/store.h>
#include <gloo/scatter.h>
#include <gloo/transport/tcp/device.h>
#include <gloo/transport/unbound_buffer.h>

#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "bench/measure/cores.h"
#include "bench/measure/library.h"
#include "bench/p2p/pipe.h"

namespace kolo::bench {

std::unique_ptr<Library> make_gloo(const LibraryRequest& request);
std::unique_ptr<Pipe> make_gloo_pipe(const LibraryRequest& request);
std::vector<std::string_view> algorithms_of_gloo(Collective collective);

namespace {

using Algorithm = ::gloo::AllreduceOptions::Algorithm;
using Reduction = void (*)(void*, const void*, const void*, std::size_t);

class StoreOfOurs : public ::gloo::rendezvous::Store {
 public:
  StoreOfOurs(std::shared_ptr<kolo::Store> store, std::chrono::milliseconds timeout)
      : store_(std::move(store)), timeout_(timeout) {}

  void set(const std::string& key, const std::vector<char>& data) override {
    store_->set(key, std::string_view(data.data(), data.size()));
  }
  std::vector<char> get(const std::string& key) override {
    const std::string value = store_->get(key, Clock::now() + timeout_);
    return {value.begin(), value.end()};
  }
  void wait(const std::vector<std::string>& keys) override { wait(keys, timeout_); }
  void wait(const std::vector<std::string>& keys,
            const std::chrono::milliseconds& timeout) override {
    const Deadline deadline = Clock::now() + timeout;
    for (const std::string& key : keys) store_->get(key, deadline);
  }

 private:
  std::shared_ptr<kolo::Store> store_;
  std::chrono::milliseconds timeout_;
};

template <typename T>
Reduction reduction(ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum:
      return static_cast<Reduction>(&::gloo::sum<T>);
    case ReduceOp::kMin:
      return static_cast<Reduction>(&::gloo::min<T>);
    case ReduceOp::kMax:
      return static_cast<Reduction>(&::gloo::max<T>);
    case ReduceOp::kProduct:
      return static_cast<Reduction>(&::gloo::product<T>);
    default:
      break;  // gloo has no average and no bit operations
  }
  return nullptr;
}

Reduction reduction(ElementType type, ReduceOp op) {
  switch (type) {
    case ElementType::kFloat32:
      return reduction<float>(op);
    case ElementType::kFloat64:
      return reduction<double>(op);
    case ElementType::kInt32:
      return reduction<std::int32_t>(op);
    case ElementType::kInt64:
      return reduction<std::int64_t>(op);
    default:
      break;  // gloo has one narrow float with other rounding; more integers show nothing new
  }
  return nullptr;
}

Algorithm parse_algorithm(const std::string& name) {
  if (name.empty()) return Algorithm::UNSPECIFIED;
  if (name == "ring") return Algorithm::RING;
  if (name == "bcube") return Algorithm::BCUBE;
  throw std::invalid_argument(fmt::format("gloo has no algorithm '{}'", name));
}

std::shared_ptr<::gloo::rendezvous::Context> connect(const LibraryRequest& request) {
  auto context = std::make_shared<::gloo::rendezvous::Context>(request.rank, request.size);
  context->setTimeout(request.timeout);
  ::gloo::transport::tcp::attr attributes("127.0.0.1");
  // gloo's thread may run on any core, not only on the rank's.
  const Unbound unbound;
  auto device = ::gloo::transport::tcp::CreateDevice(attributes);
  StoreOfOurs store(request.store, request.timeout);
  context->connectFullMesh(store, device);
  return context;
}

std::string release() {
  return fmt::format("Gloo {}.{}.{}", GLOO_VERSION_MAJOR, GLOO_VERSION_MINOR, GLOO_VERSION_PATCH);
}

class Gloo : public Library {
 public:
  explicit Gloo(const LibraryRequest& request)
      : name_(request.algorithm),
        algorithm_(parse_algorithm(request.algorithm)),
        context_(connect(request)) {}

  std::string name() const override { return "gloo"; }
  std::string transport() const override { return "tcp"; }
  std::string version() const override { return release(); }
  bool has_threads() const override { return true; }
  std::string caution() const override {
    const int threads = 2 * context_->size;
    const std::size_t cores = available_cores().size();
    if (static_cast<std::size_t>(threads) <= cores) return {};
    return fmt::format(
        "{} threads, two per rank, share {} {}: in rows of some 4 ms they are in each other's "
        "way until the scheduler's tick (bench/README.md)",
        threads, cores, cores == 1 ? "core" : "cores");
  }
  // From the sources of Debian's version, commit 5b14351: all-reduce uses its ring by default
  // (allreduce.cc), and the others have no choice (broadcast.cc, barrier.cc, allgather.cc,
  // reduce.cc, gather.cc, scatter.cc, alltoall.cc).
  std::string algorithm(const Problem& problem) const override {
    if (!name_.empty() && problem.collective == Collective::kAllReduce) return name_;
    switch (problem.collective) {
      case Collective::kBroadcast:
        return "binomial_tree";
      case Collective::kBarrier:
        return "dissemination";
      case Collective::kGather:
      case Collective::kScatter:
      case Collective::kAllToAll:
        return "direct";
      default:
        return "ring";
    }
  }

  std::string objection(const Problem& problem) const override {
    const bool is_even = problem.count % static_cast<std::size_t>(context_->size) == 0;
    switch (problem.collective) {
      case Collective::kAllReduce:
      case Collective::kReduce:
        if (reduction(problem.type, problem.op) != nullptr) return {};
        return fmt::format("no {} of {}", to_string(problem.op), to_string(problem.type));
      case Collective::kAllGather:
        if (problem.count == 0) return "its all-gather of nothing divides by zero";
        return is_even ? "" : "it takes equal chunks only";
      case Collective::kGather:
      case Collective::kScatter:
        return is_even ? "" : "it takes equal chunks only";
      case Collective::kBroadcast:
      case Collective::kBarrier:
      case Collective::kAllToAll:
        return {};
      case Collective::kReduceScatter:
      case Collective::kPushPull:
      case Collective::kPush:
      case Collective::kPull:
      case Collective::kScan:
      case Collective::kExclusiveScan:
      case Collective::kMessage:
        return "no such collective in its newer interface";
    }
    return {};
  }

  void run(const Problem& problem, const void* in, void* out) override {
    try {
      run_it(problem, in, out);
    } catch (const std::exception& error) {  // it names neither rank nor call
      throw std::runtime_error(fmt::format(
          "gloo failed in {} of {} elements, and does not name the rank that it waited for; see "
          "whether all ranks are alive: {}",
          to_string(problem.collective), problem.count, error.what()));
    }
  }

 private:
  void run_it(const Problem& problem, const void* in, void* out) {
    const std::size_t bytes = problem.count * element_bytes(problem.type);
    switch (problem.collective) {
      case Collective::kAllReduce:
        return all_reduce(problem, in, out);
      case Collective::kAllGather:
        return all_gather(problem, in, out);
      case Collective::kReduce:
        return reduce(problem, in, out);
      case Collective::kGather:
        return gather(problem, in, out);
      case Collective::kScatter:
        return scatter(problem, in, out);
      case Collective::kAllToAll: {
        ::gloo::AlltoallOptions options(context_);
        options.setInput(bytes_of(in), bytes);
        options.setOutput(static_cast<char*>(out), bytes);
        return ::gloo::alltoall(options);
      }
      case Collective::kBroadcast: {
        ::gloo::BroadcastOptions options(context_);
        options.setOutput(static_cast<char*>(out), bytes);
        options.setRoot(0);
        return ::gloo::broadcast(options);
      }
      case Collective::kBarrier: {
        ::gloo::BarrierOptions options(context_);
        return ::gloo::barrier(options);
      }
      default:
        throw std::invalid_argument("gloo: " + objection(problem));
    }
  }

  // gloo uses the element's type only for its size.
  void all_reduce(const Problem& problem, const void* in, void* out) {
    if (element_bytes(problem.type) == sizeof(double))
      return all_reduce_as<double>(problem, in, out);
    all_reduce_as<float>(problem, in, out);
  }

  template <typename T>
  void all_reduce_as(const Problem& problem, const void* in, void* out) {
    ::gloo::AllreduceOptions options(context_);
    options.setAlgorithm(algorithm_);
    options.setReduceFunction(reduction(problem.type, problem.op));
    // In place: gloo takes the output as input if no input is set.
    if (in != out) options.setInput(static_cast<T*>(const_cast<void*>(in)), problem.count);
    options.setOutput(static_cast<T*>(out), problem.count);
    ::gloo::allreduce(options);
  }

  void all_gather(const Problem& problem, const void* in, void* out) {
    const std::size_t bytes = problem.count * element_bytes(problem.type);
    const auto size = static_cast<std::size_t>(context_->size);
    ::gloo::AllgatherOptions options(context_);
    // In place: gloo expects no input if the input lies in the output.
    if (!problem.is_in_place) options.setInput(bytes_of(in), bytes / size);
    options.setOutput(static_cast<char*>(out), bytes);
    ::gloo::allgather(options);
  }

  // gloo never writes to an input.
  static char* bytes_of(const void* in) { return static_cast<char*>(const_cast<void*>(in)); }

  void reduce(const Problem& problem, const void* in, void* out) {
    if (element_bytes(problem.type) == sizeof(double)) return reduce_as<double>(problem, in, out);
    reduce_as<float>(problem, in, out);
  }

  template <typename T>
  void reduce_as(const Problem& problem, const void* in, void* out) {
    ::gloo::ReduceOptions options(context_);
    options.setRoot(kRoot);
    options.setReduceFunction(reduction(problem.type, problem.op));
    if (in != out) options.setInput(static_cast<T*>(const_cast<void*>(in)), problem.count);
    options.setOutput(static_cast<T*>(out), problem.count);
    ::gloo::reduce(options);
  }

  std::size_t share_bytes(const Problem& problem) const {
    const auto size = static_cast<std::size_t>(context_->size);
    return problem.count / size * element_bytes(problem.type);
  }

  // In place the root's own share is copied onto itself, which changes nothing.
  void gather(const Problem& problem, const void* in, void* out) {
    const std::size_t share = share_bytes(problem);
    ::gloo::GatherOptions options(context_);
    options.setRoot(kRoot);
    options.setInput(bytes_of(in), share);
    if (context_->rank == kRoot)
      options.setOutput(static_cast<char*>(out), share * static_cast<std::size_t>(context_->size));
    ::gloo::gather(options);
  }

  void scatter(const Problem& problem, const void* in, void* out) {
    const std::size_t share = share_bytes(problem);
    ::gloo::ScatterOptions options(context_);
    options.setRoot(kRoot);
    if (context_->rank == kRoot) {
      std::vector<char*> shares;
      for (int rank = 0; rank < context_->size; ++rank)
        shares.push_back(bytes_of(in) + share * static_cast<std::size_t>(rank));
      options.setInputs(shares, share);
    }
    options.setOutput(static_cast<char*>(out), share);
    ::gloo::scatter(options);
  }

  std::string name_;
  Algorithm algorithm_;
  std::shared_ptr<::gloo::rendezvous::Context> context_;
};

// Pipe over gloo's unbound buffers: a message is a part of one.
class GlooPipe : public Pipe {
 public:
  explicit GlooPipe(const LibraryRequest& request)
      : peer_(1 - request.rank), context_(connect(request)) {}

  std::string library() const override { return "gloo"; }
  std::string level() const override { return "messages"; }
  std::string transport() const override { return "tcp"; }
  std::string version() const override { return release(); }

  void exchange(const Messages& out, const Messages& in) override {
    try {
      const auto into = buffer(in);
      const auto from = buffer(out);
      for (std::size_t i = 0; i < in.count; ++i) into->recv(peer_, kSlot, i * in.bytes, in.bytes);
      for (std::size_t i = 0; i < out.count; ++i)
        from->send(peer_, kSlot, i * out.bytes, out.bytes);
      for (std::size_t i = 0; i < out.count; ++i) from->waitSend();
      for (std::size_t i = 0; i < in.count; ++i) into->waitRecv();
    } catch (const std::exception& error) {
      throw std::runtime_error(
          fmt::format("gloo failed in messages with rank {}; see whether that rank is alive: {}",
                      peer_, error.what()));
    }
  }

 private:
  static constexpr std::uint64_t kSlot = 1;

  std::unique_ptr<::gloo::transport::UnboundBuffer> buffer(const Messages& messages) {
    return context_->createUnboundBuffer(messages.first, messages.bytes * messages.count);
  }

  int peer_;
  std::shared_ptr<::gloo::rendezvous::Context> context_;
};

}  // namespace

std::vector<std::string_view> algorithms_of_gloo(Collective collective) {
  if (collective != Collective::kAllReduce) return {};
  return {"ring", "bcube"};
}

std::unique_ptr<Library> make_gloo(const LibraryRequest& request) {
  return std::make_unique<Gloo>(request);
}

std::unique_ptr<Pipe> make_gloo_pipe(const LibraryRequest& request) {
  return std::make_unique<GlooPipe>(request);
}

}  // namespace kolo::bench
