#include "bench/run_limit.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "bench/limits/limits.h"
#include "transports/posix/cores.h"

namespace kolo::bench {
namespace {

constexpr double kMostSeconds = 0.3;
constexpr double kFewestIterations = 100;  // where --iterations asks for fewer, it is a trial
constexpr double kTrialSeconds = 0.001;
constexpr std::chrono::minutes kLongest{10};  // of the largest size
constexpr std::size_t kTwoFloats = 8;

bool is_known(const Arguments& arguments, const std::string& transport) {
  const Problem& problem = arguments.problem;
  return problem.collective == Collective::kAllReduce && problem.is_in_place &&
         problem.type == ElementType::kFloat32 && arguments.ranks == 2 &&
         (transport == "shm" || transport == "tcp") && posix::affinity_cores().size() > 1;
}

}  // namespace

RunLimit::RunLimit(const Arguments& arguments, int rank, std::string transport,
                   std::shared_ptr<Store> store)
    : arguments_(arguments),
      rank_(rank),
      transport_(std::move(transport)),
      store_(std::move(store)),
      is_known_(is_known(arguments, transport_)) {}

std::optional<double> RunLimit::measure(std::size_t bytes) {
  if (!is_known_ || bytes < kTwoFloats) return std::nullopt;
  const std::string key = fmt::format("limit/{}", turns_++);
  if (rank_ != 0) {
    store_->get(key, Clock::now() + arguments_.timeout + kLongest);
    return std::nullopt;
  }
  const bool is_trial = arguments_.iterations > 0 && arguments_.iterations < kFewestIterations;
  const double seconds = is_trial ? kTrialSeconds : std::min(arguments_.seconds, kMostSeconds);
  const double found = transport_ == "shm" ? shared_memory_floor(bytes, seconds).time_us.median
                                           : quickest_tcp_floor(bytes, seconds).time_us.median;
  store_->set(key, "");
  return found;
}

}  // namespace kolo::bench
