#include "collectives/key_server/served_key.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "transports/base/check.h"

namespace kolo::inline v0::key_server {
namespace {

void count(std::vector<std::uint64_t>& histogram, std::uint64_t value) {
  const auto place = static_cast<std::size_t>(std::min<std::uint64_t>(value, kLongestLag));
  if (histogram.size() <= place) histogram.resize(place + 1);
  ++histogram[place];
}

}  // namespace

void check_rule(const Consistency& rule, std::size_t workers) {
  check(rule.kind <= Consistency::Kind::kBackup,
        fmt::format("{} is no rule of a key server", static_cast<int>(rule.kind)));
  check(rule.bound >= 0, fmt::format("a key server with a bound of {}", rule.bound));
  check(rule.kind != Consistency::Kind::kBackup || static_cast<std::size_t>(rule.bound) < workers,
        fmt::format("{} backup workers of {}: at least one worker must be no backup", rule.bound,
                    workers));
}

ServedKey::ServedKey(std::size_t number, std::span<float> values, const std::vector<int>& ranks,
                     const KeyServerOptions& options, const KeyUpdateFunction& update,
                     KeyServerStatistics& statistics)
    : number_(number),
      values_(values),
      ranks_(ranks),
      rule_(options.consistency),
      update_(update),
      statistics_(statistics),
      workers_(ranks.size()),
      first_open_(options.first_iteration) {
  for (Worker& worker : workers_) worker.clock = first_open_;
}

bool ServedKey::sums_iterations() const {
  return rule_.kind == Consistency::Kind::kSynchronous ||
         rule_.kind == Consistency::Kind::kBackup ||
         (rule_.kind == Consistency::Kind::kBounded && rule_.bound == 0);
}

// Of the workers that have not finished.
std::int64_t ServedKey::slowest_clock() const {
  std::int64_t slowest = std::numeric_limits<std::int64_t>::max();
  for (const Worker& worker : workers_) {
    if (!worker.has_finished) slowest = std::min(slowest, worker.clock);
  }
  return slowest;
}

std::string ServedKey::fault_of_push(std::size_t worker, std::int64_t iteration) const {
  const std::int64_t clock = workers_[worker].clock;
  if (iteration < clock) {
    return fmt::format("iteration {} of key {}, where iteration {} is the first that it may push",
                       iteration, number_, clock);
  }
  if (iteration == std::numeric_limits<std::int64_t>::max())
    return fmt::format("iteration {} of key {}, the largest number", iteration, number_);
  const bool is_bounded = rule_.kind == Consistency::Kind::kBounded;
  if (is_bounded && iteration - slowest_clock() > rule_.bound) {
    return fmt::format(
        "iteration {} of key {}, more than {} ahead of the slowest worker in "
        "iteration {}; it must wait for the answer to its last push",
        iteration, number_, rule_.bound, slowest_clock());
  }
  return "";
}

void ServedKey::begin(std::size_t worker, std::int64_t iteration, std::shared_ptr<float[]> memory,
                      double samples) {
  Worker& its = workers_[worker];
  its.iteration = iteration;
  its.samples = samples;
  its.memory = std::move(memory);
  if (!sums_iterations() || iteration < first_open_) return;
  const auto open = sums_.try_emplace(iteration, workers_.size(), count()).first;
  open->second.begin(worker, its.memory, samples);
}

void ServedKey::arrive(std::size_t worker, std::size_t arrived) {
  const auto open = sums_.find(workers_[worker].iteration);
  if (open != sums_.end()) {
    open->second.arrive(worker, arrived);
    // With backup workers it is open which gradients the sum has.
    const bool has_all = rule_.kind != Consistency::Kind::kBackup || rule_.bound == 0;
    if (has_all && arrived < count()) {
      leave_out_passed(*open);
      open->second.advance();
    }
  }
  if (arrived == count()) complete(worker);
}

void ServedKey::complete(std::size_t worker) {
  Worker& its = workers_[worker];
  kolo::key_server::count(statistics_.lead,
                          static_cast<std::uint64_t>(its.iteration - slowest_clock()));
  its.clock = its.iteration + 1;
  const std::shared_ptr<float[]> gradient = std::exchange(its.memory, nullptr);
  if (!sums_iterations()) {
    count_staleness(worker);
    apply({.key = number_,
           .iteration = its.iteration,
           .values = values_,
           .gradient = {gradient.get(), count()},
           .samples = its.samples,
           .gradients = 1,
           .worker = ranks_[worker]});
    return;
  }
  if (its.iteration < first_open_) ++statistics_.dropped;
  end_iterations();
}

void ServedKey::finish(std::size_t worker) {
  workers_[worker].has_finished = true;
  if (sums_iterations()) end_iterations();
}

bool ServedKey::may_answer(std::size_t worker) const {
  const std::int64_t clock = workers_[worker].clock;
  if (sums_iterations()) return first_open_ >= clock;
  return rule_.kind == Consistency::Kind::kAsynchronous || slowest_clock() >= clock - rule_.bound;
}

void ServedKey::leave_out_passed(Sums::reference open) const {
  for (std::size_t worker = 0; worker < workers_.size(); ++worker) {
    const bool has_passed = workers_[worker].has_finished || workers_[worker].clock > open.first;
    if (has_passed && open.second.is_awaited(worker)) open.second.leave_out(worker);
  }
}

bool ServedKey::is_over(const OrderedSum& sum) const {
  if (sum.is_decided()) return true;
  return rule_.kind == Consistency::Kind::kBackup && rule_.bound > 0 &&
         sum.complete() + static_cast<std::size_t>(rule_.bound) >= workers_.size();
}

void ServedKey::end_iterations() {
  for (auto open = sums_.begin(); open != sums_.end();) {
    leave_out_passed(*open);
    if (is_over(open->second)) {
      end(open);
      open = sums_.begin();
    } else {
      ++open;
    }
  }
}

// Ends the iteration, and those before it: their gradients are dropped.
void ServedKey::end(Sums::iterator last) {
  for (auto open = sums_.begin(); open != last; ++open)
    statistics_.dropped += open->second.complete();
  OrderedSum& sum = last->second;
  for (std::size_t worker = 0; worker < workers_.size(); ++worker) {
    if (sum.is_complete(worker)) {
      count_staleness(worker);
    } else {
      sum.leave_out(worker);
    }
  }
  sum.advance();
  apply({.key = number_,
         .iteration = last->first,
         .values = values_,
         .gradient = {sum.values(), count()},
         .samples = sum.samples(),
         .gradients = static_cast<int>(sum.complete())});
  first_open_ = last->first + 1;
  sums_.erase(sums_.begin(), std::next(last));
}

void ServedKey::apply(const KeyUpdate& update) {
  statistics_.gradients += static_cast<std::uint64_t>(update.gradients);
  if (update.samples <= 0) return;
  update_(update);
  ++updates_;
  ++statistics_.updates;
}

void ServedKey::count_staleness(std::size_t worker) {
  kolo::key_server::count(statistics_.staleness, updates_ - workers_[worker].seen);
}

}  // namespace kolo::inline v0::key_server
