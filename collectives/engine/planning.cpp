// Planner inputs of an engine: the costs and the tuning table, which rank 0 sends to all ranks.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

#include "collectives/algorithms/algorithm_table.h"
#include "collectives/engine/engine.h"
#include "collectives/planner/costs_text.h"
#include "collectives/planner/probe.h"
#include "transports/settings.h"

namespace kolo::inline v0 {
namespace {

constexpr std::string_view kFar = "far";
constexpr std::string_view kNear = "near";

// Costs from the transport's stated capabilities, for modes that must not measure.
Costs estimated_costs(std::span<Channel* const> channels) {
  Costs costs;
  for (const Channel* channel : channels) {
    if (channel == nullptr) continue;
    const Capabilities& can = channel->capabilities();
    costs.local.latency_us = can.latency_us / 2;
    costs.local.send_us = costs.local.receive_us = costs.local.next_us = can.latency_us / 4;
    costs.local.send_us_per_byte = costs.local.receive_us_per_byte =
        can.bandwidth_GBps > 0 ? 1e-3 / can.bandwidth_GBps : 0;
    break;
  }
  costs.remote = costs.local;
  return costs;
}

// True if a network lies between ranks, by the channels' stated latency. On one host without a slow
// transport a long measured latency only means a busy machine.
bool is_far(const Topology& placement, std::span<Channel* const> channels) {
  constexpr double kFarUs = 200;
  return !placement.is_one_host || std::ranges::any_of(channels, [](const Channel* channel) {
    return channel != nullptr && channel->capabilities().latency_us >= kFarUs;
  });
}

// Store key of the costs measured by an earlier communicator of this job over the same transport.
std::string costs_key(std::string_view transport, int size) {
  return fmt::format("costs of {} ranks over {}", size, transport);
}

std::vector<std::string_view> names_in_rank_order(Collective collective) {
  std::vector<std::string_view> names;
  for (const Algorithm& algorithm : algorithms()) {
    if (algorithm.collective == collective && algorithm.is_rank_ordered) {
      names.push_back(algorithm.name);
    }
  }
  return names;
}

// Removes the first line from `text` and returns it.
std::string_view take_line(std::string_view& text) {
  const std::size_t end = text.find('\n');
  const std::string_view line = text.substr(0, end);
  text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
  return line;
}

// The table and the costs travel to the other ranks as one value of the store.
void require_short(const TuningTable& table, const std::string& path, std::string_view named_by) {
  constexpr std::size_t kLongest = Store::kLongestValue - (64 << 10);
  const std::size_t bytes = table.format().size();
  if (bytes <= kLongest) return;
  throw std::invalid_argument(fmt::format(
      "the tuning table '{}' (named by {}) has {} points, {} bytes, but at most {} can be sent to "
      "all ranks: remove collectives, transports, numbers of ranks or sizes that are not used",
      path, named_by, table.points().size(), bytes, kLongest));
}

}  // namespace

std::string_view to_string(Reproducibility mode) {
  switch (mode) {
    case Reproducibility::kFast:
      return "fast";
    case Reproducibility::kOrdered:
      return "ordered";
    case Reproducibility::kInvariant:
      return "invariant";
  }
  return "unknown";
}

PlannerInputs Engine::situation() const {
  return {size_,
          placement_.hosts,
          std::string(transport_->name()),
          plans_->can_answer(),
          plans_->credit(),
          plans_->segments(),
          options_.segment_bytes};
}

// Makes a planner for calls on streams. If hosts carry the data, the hosts' costs apply. A rank
// without a device uses the same planner then.
void Engine::plan_streams(const Costs& costs) {
  if (streams_ == nullptr || size_ == 1 || streams_->is_one_with_host()) return;
  PlannerInputs on_streams = situation();
  streams_->suit(on_streams);
  Costs own = costs;
  const Costs here = streams_->costs(placement_.devices);  // a group's devices may be fewer
  own.cores = here.cores;
  own.local.latency_us = own.remote.latency_us = here.local.latency_us;
  stream_planner_.emplace(std::move(on_streams), own, TuningTable());
}

// Rank 0's plan, in lines: the mode, far or near, the costs (empty: to be measured), the costs of
// its device (empty: no device), the table.
std::string Engine::publish_plan(Store& job) {
  const std::string path = options_.tuning.empty() ? read_settings().tuning : options_.tuning;
  TuningTable table;
  if (!path.empty()) table = TuningTable::read(path);
  require_short(table, path,
                options_.tuning.empty() ? "KOLO_TUNING" : "CommunicatorOptions::tuning");
  std::string costs;
  if (options_.reproducibility != Reproducibility::kOrdered) {
    costs = job.try_get(costs_key(transport_->name(), size_)).value_or("");
  } else {
    costs = to_text(estimated_costs(channels_));
  }
  std::string text =
      fmt::format("{}\n{}\n{}\n{}\n{}", to_string(options_.reproducibility),
                  is_far(placement_, channels_) ? kFar : kNear, costs,
                  streams_ ? to_text(streams_->costs(placement_.devices)) : "", table.format());
  store_->set("plan", text);
  return text;
}

std::string Engine::fetch_plan(Deadline deadline) {
  try {
    return store_->get("plan", deadline);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kDeadline) throw;
    throw Error(
        ErrorCode::kDeadline, 0,
        fmt::format(
            "rank {} ({}): rank 0 has not published its planner settings; is rank 0 alive? {}",
            rank_, host_, error.what()));
  }
}

void Engine::agree_on_planner(Store& job, Deadline deadline) {
  if (size_ == 1) {
    planner_ = Planner(situation(), {}, {});
    return;
  }
  const std::string text = rank_ == 0 ? publish_plan(job) : fetch_plan(deadline);
  std::string_view rest = text;
  const std::string_view mode = take_line(rest);
  if (mode != to_string(options_.reproducibility)) {
    throw Error(ErrorCode::kMismatch, 0,
                fmt::format("rank 0 requests {} results, rank {} requests {} results; "
                            "CommunicatorOptions::reproducibility must be the same on every rank",
                            mode, rank_, to_string(options_.reproducibility)));
  }
  const bool is_long_way = take_line(rest) == kFar;
  const std::string_view known = take_line(rest);
  const std::string_view of_device = take_line(rest);
  const Costs costs = known.empty() ? probe(deadline) : costs_from(known);
  if (known.empty() && rank_ == 0) job.set(costs_key(transport_->name(), size_), to_text(costs));
  if (is_long_way) plans_->suit(costs);
  planner_ = Planner(situation(), costs, TuningTable::parse(rest, "rank 0's tuning table"));
  if (!of_device.empty()) plan_streams(costs_from(of_device));
}

Costs Engine::probe(Deadline deadline) {
  ProbeRequest request;
  request.rank = rank_;
  request.size = size_;
  request.channels = channels_;
  request.hosts = placement_.hosts;
  request.cores = placement_.local_cores;
  request.transport = transport_.get();
  request.policy = policy_.get();
  request.store = store_.get();
  request.deadline = deadline;
  const Costs costs = measure_costs(request);
  count_bytes(probed_);
  return costs;
}

// --- per call; these need the lock ---

// The order of combination that results need, whatever algorithm, segments and transport are used.
RankOrder Engine::order_of(const Call& call) const {
  if (!is_reduction(call.collective)) return RankOrder::kAny;
  if (call.reducer == nullptr) return order_of(call.collective, call.type, call.op);
  if (options_.reproducibility == Reproducibility::kInvariant) return RankOrder::kFold;
  return call.reducer->is_commutative ? RankOrder::kAny : RankOrder::kOperands;
}

void Engine::choose(Call& call) {
  const RankOrder order = order_of(call);
  if (call.algorithm == kPlannerChooses) {
    Planner& planner = call.stream && stream_planner_ ? *stream_planner_ : planner_;
    call.algorithm = planner.choose(call.collective, call.count * call.element_bytes, order);
  } else if (order == RankOrder::kFold && !algorithms()[call.algorithm].is_rank_ordered) {
    throw std::invalid_argument(fmt::format(
        "{}: algorithm '{}' does not combine in the order of ranks, which invariant results need; "
        "these do: {}",
        to_string(call.collective), algorithm_name(call.algorithm),
        fmt::join(names_in_rank_order(call.collective), ", ")));
  }
}

// --- queries ---

RankOrder Engine::order_of(Collective collective, ElementType type, ReduceOp op) const {
  const bool is_invariant = options_.reproducibility == Reproducibility::kInvariant &&
                            is_reduction(collective) && depends_on_order(type, op);
  // Two operands have only one order: IEEE operations commute.
  return is_invariant && size_ > 2 ? RankOrder::kFold : RankOrder::kAny;
}

std::uint8_t Engine::choose(Collective collective, std::size_t bytes, ElementType type,
                            ReduceOp op) {
  const std::lock_guard lock(mutex_);
  return planner_.choose(collective, bytes, order_of(collective, type, op));
}

std::vector<Prediction> Engine::predict(Collective collective, std::size_t bytes, ElementType type,
                                        ReduceOp op) {
  const std::lock_guard lock(mutex_);
  return planner_.predict(collective, bytes, order_of(collective, type, op));
}

}  // namespace kolo::inline v0
