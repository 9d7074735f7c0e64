// One key at its server: applies gradients by the rule, and tells which workers may be answered.
//
// The *clock* of a worker is the first iteration that it may still push. Its answer to a push waits
// until
//
//   synchronous, backup  the iteration has ended
//   bounded              the slowest clock is at most `bound` behind this worker's
//   asynchronous         never
//
// In the first row gradients are summed by iteration. An iteration ends when every worker has
// pushed or passed it, or when enough gradients are there (backup). It then counts as ended with
// all iterations before it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "collectives/key_server.h"
#include "collectives/key_server/ordered_sum.h"

namespace kolo::inline v0::key_server {

// Throws std::invalid_argument for an impossible rule.
void check_rule(const Consistency& rule, std::size_t workers);

// Workers are numbered in the order of their ranks; `ranks` holds these. References are borrowed.
class ServedKey {
 public:
  ServedKey(std::size_t number, std::span<float> values, const std::vector<int>& ranks,
            const KeyServerOptions& options, const KeyUpdateFunction& update,
            KeyServerStatistics& statistics);

  std::size_t count() const { return values_.size(); }
  std::span<const float> values() const { return values_; }
  std::uint64_t updates() const { return updates_; }
  std::int64_t first_open_iteration() const { return first_open_; }

  // What is wrong with a push of this iteration; empty if nothing.
  std::string fault_of_push(std::size_t worker, std::int64_t iteration) const;
  // The worker's gradient begins to arrive in `memory`.
  void begin(std::size_t worker, std::int64_t iteration, std::shared_ptr<float[]> memory,
             double samples);
  // Its first `arrived` elements are there. May run the update.
  void arrive(std::size_t worker, std::size_t arrived);
  // The worker pushes no more. May run the update.
  void finish(std::size_t worker);

  bool may_answer(std::size_t worker) const;
  // The current values were sent to the worker.
  void note_answer(std::size_t worker) { workers_[worker].seen = updates_; }

 private:
  struct Worker {
    std::int64_t clock = 0;
    std::uint64_t seen = 0;  // updates in the values that it has pulled last
    bool has_finished = false;
    // The gradient that arrives.
    std::int64_t iteration = 0;
    std::shared_ptr<float[]> memory;
    double samples = 0;
  };
  using Sums = std::map<std::int64_t, OrderedSum>;

  bool sums_iterations() const;
  std::int64_t slowest_clock() const;
  void complete(std::size_t worker);
  void leave_out_passed(Sums::reference open) const;
  bool is_over(const OrderedSum& sum) const;
  void end_iterations();
  void end(Sums::iterator last);
  void apply(const KeyUpdate& update);
  void count_staleness(std::size_t worker);

  std::size_t number_;
  std::span<float> values_;
  const std::vector<int>& ranks_;
  Consistency rule_;
  const KeyUpdateFunction& update_;
  KeyServerStatistics& statistics_;
  std::vector<Worker> workers_;
  std::int64_t first_open_;
  std::uint64_t updates_ = 0;
  Sums sums_;  // of open iterations
};

}  // namespace kolo::inline v0::key_server
