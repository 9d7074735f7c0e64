// Worker process of an MPI beside a rank of kolo-bench (worker_processes.h). It sleeps until there
// is a pass to run. Compiled once per MPI, and started by its launcher.
//
//   kolo-bench-openmpi PORT SIZE TIMEOUT_MS
#include <fmt/format.h>
#include <mpi.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "bench/measure/buffer.h"
#include "bench/measure/cores.h"
#include "bench/measure/pass_runner.h"
#include "bench/measure/rank_group.h"
#include "bench/p2p/pass.h"
#include "bench/p2p/pipe.h"
#include "bench/peers/worker_processes.h"
#include "transports/error.h"
#include "transports/posix/event.h"
#include "transports/rendezvous.h"

namespace {

using namespace kolo;
using namespace kolo::bench;

constexpr const char* kHost = "127.0.0.1";
constexpr int kLookMs = 500;
constexpr std::chrono::hours kAsLongAsItTakes{24 * 365};  // meanwhile other libraries run

MPI_Datatype type_of(const Problem& problem) {
  switch (problem.type) {
    case ElementType::kFloat32:
      return MPI_FLOAT;
    case ElementType::kFloat64:
      return MPI_DOUBLE;
    case ElementType::kInt8:
      return MPI_INT8_T;
    case ElementType::kInt16:
      return MPI_INT16_T;
    case ElementType::kInt32:
      return MPI_INT32_T;
    case ElementType::kInt64:
      return MPI_INT64_T;
    case ElementType::kUint8:
    case ElementType::kFloat8E4M3:  // MPI lacks these floats: they are only moved
    case ElementType::kFloat8E5M2:
      return MPI_UINT8_T;
    case ElementType::kUint16:
    case ElementType::kFloat16:
    case ElementType::kBFloat16:
      return MPI_UINT16_T;
    case ElementType::kUint32:
      return MPI_UINT32_T;
    case ElementType::kUint64:
      return MPI_UINT64_T;
  }
  return MPI_DATATYPE_NULL;
}

MPI_Op operation_of(const Problem& problem) {
  switch (problem.op) {
    case ReduceOp::kSum:
      return MPI_SUM;
    case ReduceOp::kMin:
      return MPI_MIN;
    case ReduceOp::kMax:
      return MPI_MAX;
    case ReduceOp::kProduct:
      return MPI_PROD;
    case ReduceOp::kBitAnd:
      return MPI_BAND;
    case ReduceOp::kBitOr:
      return MPI_BOR;
    case ReduceOp::kBitXor:
      return MPI_BXOR;
    case ReduceOp::kAverage:
    case ReduceOp::kScaledSum:
    case ReduceOp::kUser:
      break;
  }
  return MPI_OP_NULL;
}

// Arguments of the MPI call that depend on the problem only, computed before the iterations.
struct Plan {
  int count = 0;
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_Op op = MPI_OP_NULL;
  bool is_equal = true;  // whether all chunks are equal
  std::vector<int> counts;
  std::vector<int> begins;
};

Plan plan_of(const Problem& problem, int size) {
  Plan plan;
  plan.count = static_cast<int>(problem.count);
  plan.type = type_of(problem);
  plan.op = operation_of(problem);
  plan.is_equal = problem.count % static_cast<std::size_t>(size) == 0;
  for (int rank = 0; rank < size; ++rank) {
    plan.counts.push_back(static_cast<int>(chunk_count(problem.count, size, rank)));
    plan.begins.push_back(static_cast<int>(chunk_begin(problem.count, size, rank)));
  }
  return plan;
}

// Counts entries into and exits from MPI: odd while inside. One thread writes and another reads, so
// no locked instructions are needed.
class Calls {
 public:
  class Inside {
   public:
    explicit Inside(Calls& calls) : calls_(calls) { calls_.step(); }
    ~Inside() { calls_.step(); }
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;

   private:
    Calls& calls_;
  };

  std::uint64_t count() const { return count_.load(std::memory_order_relaxed); }

 private:
  void step() { count_.store(count() + 1, std::memory_order_relaxed); }
  std::atomic<std::uint64_t> count_{0};
};

class Mpi : public Library {
 public:
  Mpi(int rank, int size, Calls& calls) : rank_(rank), size_(size), calls_(calls) {}

  void prepare(const Problem& problem) { plan_ = plan_of(problem, size_); }

  std::string name() const override { return "mpi"; }
  std::string transport() const override { return {}; }
  std::string algorithm(const Problem&) const override { return {}; }
  std::string objection(const Problem&) const override { return {}; }

  // In place MPI puts a rank's chunk of a reduce-scatter at the start of the buffer.
  const void* result(const Problem& problem, const void* in, const void* out) const override {
    const bool is_scattered = problem.collective == Collective::kReduceScatter;
    return problem.is_in_place && is_scattered ? in : out;
  }

  void run(const Problem& problem, const void* in, void* out) override {
    const Calls::Inside inside(calls_);
    const int code = call(problem, in, out);
    if (code != MPI_SUCCESS) throw std::runtime_error(fmt::format("MPI's error {}", code));
  }

 private:
  int call(const Problem& problem, const void* in, void* out) {
    const Plan& p = plan_;
    const void* given = problem.is_in_place ? MPI_IN_PLACE : in;
    switch (problem.collective) {
      case Collective::kAllReduce:
        return MPI_Allreduce(given, out, p.count, p.type, p.op, MPI_COMM_WORLD);
      case Collective::kReduceScatter:
        return reduce_scatter(problem, given, in, out);
      case Collective::kAllGather:
        return all_gather(given, out);
      case Collective::kBroadcast:
        return MPI_Bcast(out, p.count, p.type, kRoot, MPI_COMM_WORLD);
      case Collective::kReduce:
        return MPI_Reduce(rank_ == kRoot ? given : in, out, p.count, p.type, p.op, kRoot,
                          MPI_COMM_WORLD);
      case Collective::kGather:
        return gather(rank_ == kRoot ? given : in, out);
      case Collective::kScatter:
        return scatter(in, problem.is_in_place && rank_ == kRoot ? MPI_IN_PLACE : out);
      case Collective::kAllToAll:
        return MPI_Alltoall(in, p.counts.front(), p.type, out, p.counts.front(), p.type,
                            MPI_COMM_WORLD);
      case Collective::kScan:
        return MPI_Scan(given, out, p.count, p.type, p.op, MPI_COMM_WORLD);
      case Collective::kExclusiveScan:
        return MPI_Exscan(given, out, p.count, p.type, p.op, MPI_COMM_WORLD);
      case Collective::kBarrier:
        return MPI_Barrier(MPI_COMM_WORLD);
      case Collective::kPushPull:
      case Collective::kPush:
      case Collective::kPull:
      case Collective::kMessage:
        break;
    }
    throw std::invalid_argument("MPI has no such collective");
  }

  int reduce_scatter(const Problem& problem, const void* given, const void* in, void* out) {
    const Plan& p = plan_;
    void* result = problem.is_in_place ? const_cast<void*>(in) : out;
    if (p.is_equal)
      return MPI_Reduce_scatter_block(given, result, p.counts.front(), p.type, p.op,
                                      MPI_COMM_WORLD);
    return MPI_Reduce_scatter(given, result, p.counts.data(), p.type, p.op, MPI_COMM_WORLD);
  }

  int own_count() const { return plan_.counts[static_cast<std::size_t>(rank_)]; }

  int all_gather(const void* given, void* out) {
    const Plan& p = plan_;
    if (p.is_equal)
      return MPI_Allgather(given, own_count(), p.type, out, own_count(), p.type, MPI_COMM_WORLD);
    return MPI_Allgatherv(given, own_count(), p.type, out, p.counts.data(), p.begins.data(), p.type,
                          MPI_COMM_WORLD);
  }

  int gather(const void* given, void* out) {
    const Plan& p = plan_;
    if (p.is_equal)
      return MPI_Gather(given, own_count(), p.type, out, own_count(), p.type, kRoot,
                        MPI_COMM_WORLD);
    return MPI_Gatherv(given, own_count(), p.type, out, p.counts.data(), p.begins.data(), p.type,
                       kRoot, MPI_COMM_WORLD);
  }

  int scatter(const void* in, void* out) {
    const Plan& p = plan_;
    if (p.is_equal)
      return MPI_Scatter(in, own_count(), p.type, out, own_count(), p.type, kRoot, MPI_COMM_WORLD);
    return MPI_Scatterv(in, p.counts.data(), p.begins.data(), p.type, out, own_count(), p.type,
                        kRoot, MPI_COMM_WORLD);
  }

  int rank_;
  int size_;
  Plan plan_;
  Calls& calls_;
};

// Messages between the two ranks of MPI_COMM_WORLD.
class Messenger : public Pipe {
 public:
  Messenger(int rank, Calls& calls) : peer_(1 - rank), calls_(calls) {}

  std::string library() const override { return "mpi"; }
  std::string level() const override { return "messages"; }
  std::string transport() const override { return {}; }

  void exchange(const Messages& out, const Messages& in) override {
    const Calls::Inside inside(calls_);
    requests_.clear();
    for (std::size_t i = 0; i < in.count; ++i) {
      MPI_Irecv(in.first + i * in.bytes, static_cast<int>(in.bytes), MPI_BYTE, peer_, kTag,
                MPI_COMM_WORLD, &requests_.emplace_back());
    }
    for (std::size_t i = 0; i < out.count; ++i) {
      MPI_Isend(out.first + i * out.bytes, static_cast<int>(out.bytes), MPI_BYTE, peer_, kTag,
                MPI_COMM_WORLD, &requests_.emplace_back());
    }
    const int code =
        MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE);
    if (code != MPI_SUCCESS) throw std::runtime_error(fmt::format("MPI's error {}", code));
  }

 private:
  static constexpr int kTag = 0;
  int peer_;
  Calls& calls_;
  std::vector<MPI_Request> requests_;
};

// Ends this process when the job has failed, even inside an MPI call. Ends the job when one MPI
// call takes longer than the timeout.
class Watch {
 public:
  Watch(Store& store, const Calls& calls, int rank, std::chrono::milliseconds timeout)
      : store_(store), calls_(calls), rank_(rank), timeout_(timeout), thread_([this] { look(); }) {}
  ~Watch() {
    end_.ring();
    thread_.join();
  }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

 private:
  void look() {
    std::uint64_t seen = 0;
    auto since = Clock::now();
    while (true) {
      std::array<pollfd, 2> watched{
          {{store_.descriptor(), POLLIN, 0}, {end_.descriptor(), POLLIN, 0}}};
      poll(watched.data(), watched.size(), kLookMs);
      if (watched[1].revents != 0) return;
      if (store_.failure()) _exit(EXIT_FAILURE);
      const std::uint64_t calls = calls_.count();
      if (calls != seen || calls % 2 == 0) {
        seen = calls;
        since = Clock::now();
      }
      if (Clock::now() - since < timeout_) continue;
      store_.post_failure(
          fmt::format("rank {}: one call of MPI has taken longer than {:.1f} s; see whether "
                      "another rank has stopped, or raise --timeout",
                      rank_, std::chrono::duration<double>(timeout_).count()));
    }
  }

  Store& store_;
  const Calls& calls_;
  int rank_;
  std::chrono::milliseconds timeout_;
  posix::Event end_;
  std::thread thread_;
};

// The part of MPI's version text that names the release: "Open MPI v4.1.4", "MPICH Version: 4.0.2".
std::string version() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = {};
  int length = 0;
  MPI_Get_library_version(text, &length);
  const std::string all(text, static_cast<std::size_t>(length));
  std::istringstream words(all.substr(0, all.find_first_of("\n,")));
  std::string found;
  for (std::string word; words >> word;) found += (found.empty() ? "" : " ") + word;
  return found;
}

void map(bench::Buffer& buffer, std::string& path, const std::string& wanted, std::size_t bytes) {
  if (path == wanted) return;
  buffer = wanted.empty() ? bench::Buffer() : bench::Buffer(wanted, bytes);
  path = wanted;
}

void serve(int rank, int size, std::chrono::milliseconds timeout, std::shared_ptr<Store> store) {
  Calls calls;
  Mpi mpi(rank, size, calls);
  Messenger messenger(rank, calls);
  const Watch watch(*store, calls, rank, timeout);
  const auto place = prefixed(store, "meeting/");
  RankGroup group(rank, size, *place, timeout);
  store->set(hello_key(rank), version());
  bench::Buffer data;
  bench::Buffer input;
  std::string data_path;
  std::string input_path;
  for (int number = 0;; ++number) {
    const std::string text = store->get(request_key(number, rank), Clock::now() + kAsLongAsItTakes);
    if (text.empty()) return;
    const WorkerRequest order = parse_worker_request(text);
    if (order.game) {
      // A rank with complete receives may still owe its peer a message, which MPI sends only in the
      // next call. Without calls, windows of 64 messages of 4 KiB hung once.
      group.set_meanwhile([] {
        int is_there = 0;
        MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &is_there, MPI_STATUS_IGNORE);
      });
      store->set(result_key(number, rank), to_text(run_pass(messenger, *order.game, group)));
      group.set_meanwhile({});
      continue;
    }
    map(data, data_path, order.data_path, order.data_bytes);
    map(input, input_path, order.input_path, order.input_bytes);
    mpi.prepare(order.turn.problem);
    PassRunner player(group, data.data(), input.data());
    store->set(result_key(number, rank), to_text(player.run_pass(mpi, order.turn)));
  }
}

int run(char** argv) {
  const std::chrono::milliseconds timeout{std::atoi(argv[3])};
  const auto store = connect_tcp_store(kHost, static_cast<std::uint16_t>(std::atoi(argv[1])),
                                       Clock::now() + timeout);
  int rank = 0;
  int size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  try {
    if (size != std::atoi(argv[2])) {
      throw std::runtime_error(
          fmt::format("the launcher started {} processes of {}", size, argv[2]));
    }
    bind_rank(rank, size);
    serve(rank, size, timeout, store);
  } catch (const std::exception& error) {
    store->post_failure(by_rank(rank, error.what()));
    return EXIT_FAILURE;
  }
  return EXIT_SUCCESS;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    fmt::print(stderr, "{}: kolo-bench starts this program, as --against asks\n", argv[0]);
    return EXIT_FAILURE;
  }
  MPI_Init(&argc, &argv);
  int code = EXIT_FAILURE;
  try {
    code = run(argv);
  } catch (const std::exception& error) {  // no store: kolo-bench is gone
    fmt::print(stderr, "{}: {}\n", argv[0], error.what());
  }
  if (code != EXIT_SUCCESS) _exit(code);  // other ranks may never reach MPI_Finalize
  MPI_Finalize();
  return code;
}
