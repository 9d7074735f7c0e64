#include "bench/run_limit.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "bench/cores.h"
#include "bench/facts.h"
#include "bench/limits/limits.h"

namespace kolo::bench {
namespace {

constexpr double kMostSeconds = 0.3;
constexpr double kFewestIterations = 100;  // where --iterations asks for fewer, it is a trial
constexpr double kTrialSeconds = 0.001;
constexpr std::chrono::minutes kLongest{10};  // of the largest size

// Where a floor speaks of the same: over these transports on one host, in place as kolo-bench has
// it.
bool is_like(const Arguments& arguments, const std::string& transport) {
  const Problem& problem = arguments.problem;
  const bool is_apart = problem.collective == Collective::kAllToAll;
  const bool has_adder = !is_reduction(problem.collective) || problem.type == ElementType::kFloat32;
  return has_adder && problem.is_in_place != is_apart &&
         (transport == "shm" || transport == "tcp") && network_between_ranks().empty() &&
         available_cores().size() > 1;
}

}  // namespace

RunLimit::RunLimit(const Arguments& arguments, int rank, std::string transport,
                   std::shared_ptr<Store> store, Pages pages)
    : arguments_(arguments),
      rank_(rank),
      transport_(std::move(transport)),
      store_(std::move(store)),
      pages_(pages),
      is_like_(is_like(arguments, transport_)) {}

std::optional<double> RunLimit::measure(std::size_t bytes) {
  const FloorRequest request{arguments_.problem.collective, arguments_.ranks, bytes,
                             arguments_.is_memory_its_own, pages_};
  if (!is_like_ || !has_floor(request)) return std::nullopt;
  const std::string key = fmt::format("limit/{}", turns_++);
  if (rank_ != 0) {
    store_->get(key, Clock::now() + arguments_.timeout + kLongest);
    return std::nullopt;
  }
  const bool is_trial = arguments_.iterations > 0 && arguments_.iterations < kFewestIterations;
  const double seconds =
      is_trial ? kTrialSeconds : std::min(arguments_.seconds, kMostSeconds) / arguments_.passes;
  const Row found =
      transport_ == "shm" ? shared_memory_floor(request, seconds) : tcp_floor(request, seconds);
  store_->set(key, "");
  return found.time_us.median;
}

}  // namespace kolo::bench
