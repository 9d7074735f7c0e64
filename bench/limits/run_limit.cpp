#include "bench/limits/run_limit.h"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <new>
#include <stop_token>
#include <thread>
#include <utility>

#include "bench/device/copy_limit.h"
#include "bench/limits/limits.h"
#include "bench/measure/cores.h"
#include "bench/output/run_info.h"
#include "transports/error.h"

namespace kolo::bench {
namespace {

constexpr double kMostSeconds = 0.3;
constexpr double kFewestIterations = 100;  // fewer --iterations make it a trial
constexpr double kTrialSeconds = 0.001;
constexpr std::chrono::minutes kLongest{10};  // for the largest size
constexpr int kBeats = 8;                     // heartbeats of rank 0 per --timeout
constexpr std::string_view kBeat = "limit/beats";

// With more than two ranks over shm the bound counts bytes only. For smaller sizes waits take the
// time, and a bound of 0.1 us is useless.
constexpr std::size_t kLeastBound = 32 * 1024;

// The collective with the same floor as `problem`: a parameter server with a share on every rank
// moves what another collective moves. One server with one worker is a broadcast. None if there is
// no such collective.
std::optional<Collective> floor_collective(const Problem& problem, int ranks) {
  const bool is_pair = problem.servers == 1 && ranks == 2;
  if (problem.servers > 0 && !is_pair) return std::nullopt;
  switch (problem.collective) {
    case Collective::kPush:
      return is_pair ? Collective::kBroadcast : Collective::kReduceScatter;
    case Collective::kPull:
      return is_pair ? Collective::kBroadcast : Collective::kAllGather;
    case Collective::kPushPull:
      if (is_pair) return std::nullopt;
      return Collective::kAllReduce;
    default:
      return problem.collective;
  }
}

// Whether the transport has known floors, in host memory, without an emulated network.
bool is_within_this_host(const Arguments& arguments, const std::string& transport) {
  return arguments.device.empty() && (transport == "shm" || transport == "tcp") &&
         network_between_ranks().empty() && available_cores().size() > 1;
}

// Whether the floors measure the same work: element type, and in place as in kolo-bench.
bool is_like(const Arguments& arguments, const std::string& transport) {
  const Problem& problem = arguments.problem;
  const bool is_apart = problem.collective == Collective::kAllToAll;
  const bool has_adder = !is_reduction(problem.collective) || problem.type == ElementType::kFloat32;
  return is_within_this_host(arguments, transport) && has_adder &&
         floor_collective(problem, arguments.ranks) && problem.is_in_place != is_apart;
}

// Heartbeat of rank 0 in the store: the floor of a large size takes longer than the other ranks'
// timeout. It is rare enough to cost nothing.
class Heartbeat {
 public:
  Heartbeat(Store& store, std::chrono::milliseconds every)
      : thread_([&store, every](const std::stop_token& stop) { beat(store, every, stop); }) {}

 private:
  static void beat(Store& store, std::chrono::milliseconds every, const std::stop_token& stop) {
    std::mutex mutex;
    std::condition_variable_any stopped;
    std::unique_lock lock(mutex);
    const auto end = Clock::now() + kLongest;
    while (!stop.stop_requested() && Clock::now() < end) {
      stopped.wait_for(lock, stop, every, [] { return false; });
      try {
        store.add(kBeat, 1);
      } catch (const Error&) {
        return;  // rank 0 sees the same error and reports it
      }
    }
  }

  std::jthread thread_;
};

}  // namespace

RunLimit::RunLimit(const Arguments& arguments, int rank, std::string transport,
                   std::shared_ptr<Store> store, Pages pages, std::shared_ptr<DeviceMemory> device)
    : arguments_(arguments),
      rank_(rank),
      transport_(std::move(transport)),
      store_(std::move(store)),
      pages_(pages),
      device_(std::move(device)),
      is_like_(is_like(arguments, transport_)) {}

Problem RunLimit::problem_of(std::size_t bytes) const {
  Problem problem = arguments_.problem;
  problem.count = bytes / element_bytes(problem.type);
  return problem;
}

FloorRequest RunLimit::floor_of(std::size_t bytes) const {
  const Problem& problem = arguments_.problem;
  return {floor_collective(problem, arguments_.ranks).value_or(problem.collective),
          arguments_.ranks, bytes, arguments_.is_memory_its_own, pages_};
}

bool RunLimit::is_known(std::size_t bytes) const {
  if (device_ != nullptr)
    return device_->count() == 1 && bytes_on_device(problem_of(bytes), arguments_.ranks) > 0;
  const bool is_mere_bound = transport_ == "shm" && arguments_.ranks > 2 && bytes < kLeastBound;
  return is_like_ && !is_mere_bound && has_floor(floor_of(bytes));
}

bool RunLimit::is_known(const MessagesRequest& messages) const {
  return is_within_this_host(arguments_, transport_) && has_floor(messages);
}

std::optional<double> RunLimit::measure(std::size_t bytes) {
  return in_turn(is_known(bytes), [&](double seconds) { return measure_here(bytes, seconds); });
}

std::optional<double> RunLimit::measure(const MessagesRequest& messages) {
  return in_turn(is_known(messages), [&](double seconds) {
    return transport_ == "shm" ? shared_memory_floor(messages, seconds).time_us
                               : tcp_floor(messages, seconds).time_us;
  });
}

std::optional<double> RunLimit::in_turn(
    bool is_known, const std::function<std::optional<double>(double seconds)>& measure) {
  if (!is_known) return std::nullopt;
  const std::string key = fmt::format("limit/{}", turns_++);
  if (rank_ != 0) {
    wait_for_rank_0(key);
    return std::nullopt;
  }
  const Heartbeat heart(*store_, arguments_.timeout / kBeats);
  std::optional<double> found;
  try {
    found = measure(seconds());
  } catch (const std::bad_alloc&) {  // measure the row without a limit
  }
  store_->set(key, "");
  return found;
}

double RunLimit::seconds() const {
  const bool is_trial = arguments_.iterations > 0 && arguments_.iterations < kFewestIterations;
  return is_trial ? kTrialSeconds : std::min(arguments_.seconds, kMostSeconds) / arguments_.passes;
}

std::optional<double> RunLimit::measure_here(std::size_t bytes, double seconds) const {
  if (device_ != nullptr)
    return copies_on_device_us(*device_, problem_of(bytes), arguments_.ranks, seconds);
  const FloorRequest request = floor_of(bytes);
  const Row found =
      transport_ == "shm" ? shared_memory_floor(request, seconds) : tcp_floor(request, seconds);
  return found.time_us.median;
}

void RunLimit::wait_for_rank_0(const std::string& key) {
  std::int64_t beats = store_->add(kBeat, 0);
  auto heard = Clock::now();
  while (true) {
    try {
      store_->get(key, Clock::now() + arguments_.timeout / kBeats);
      return;
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kDeadline) throw;
    }
    const auto now = Clock::now();
    if (const std::int64_t found = store_->add(kBeat, 0); found != beats) {
      beats = found;
      heard = now;
    } else if (now - heard >= arguments_.timeout) {
      const double waited_s = std::chrono::duration<double>(arguments_.timeout).count();
      throw Error(ErrorCode::kDeadline, 0,
                  fmt::format("rank {}: waited {} s for rank 0, which measures the machine's limit "
                              "(the column limit) and makes no progress: see whether it has "
                              "stopped, or raise --timeout",
                              rank_, waited_s));
    }
  }
}

}  // namespace kolo::bench
