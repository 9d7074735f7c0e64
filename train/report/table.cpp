#include "train/report/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <numeric>
#include <optional>

#include "train/loop/metrics.h"
#include "train/pipeline/schedule.h"

namespace kolo::train {
namespace {

using Runs = std::vector<const RunRecord*>;
using Value = std::function<double(const RunRecord&)>;
using Has = bool (*)(const RunRecord& run);

constexpr double kMiB = 1 << 20;
constexpr std::array<std::pair<const char*, double>, 3> kQuantiles{
    {{"  p10 of rank 0", 0.1}, {"  median", 0.5}, {"  p90", 0.9}}};

std::string with_spread(const Runs& runs, const Value& value, int digits) {
  std::vector<double> values;
  for (const RunRecord* run : runs) values.push_back(value(*run));
  return train::with_spread(values, digits);
}

// The mean over workers (or over servers) of `value`.
Value mean_of_ranks(bool of_workers, std::function<double(const RankRecord&)> value) {
  return [of_workers, value = std::move(value)](const RunRecord& run) {
    double sum = 0;
    int count = 0;
    for (const RankRecord& rank : run.ranks) {
      if (rank.is_worker != of_workers) continue;
      sum += value(rank);
      ++count;
    }
    return count > 0 ? sum / count : 0;
  };
}

Value of_workers(std::function<double(const RankRecord&)> value) {
  return mean_of_ranks(true, std::move(value));
}

bool is_of_kolo(const RunRecord& run) { return run.is_kolo(); }
bool has_servers(const RunRecord& run) { return run.servers > 0; }
bool has_kolo_servers(const RunRecord& run) { return run.is_kolo() && run.servers > 0; }
bool is_predicted(const RunRecord& run) { return run.predicted_step_seconds >= 0; }
bool is_served(const RunRecord& run) { return run.gradients_applied > 0; }

class TableMaker {
 public:
  explicit TableMaker(const Report& report) {
    for (const RunRecord& run : report.runs) {
      if (std::ranges::find(table_.columns, run.arm) != table_.columns.end()) continue;
      table_.columns.push_back(run.arm);
      arms_.push_back(runs_of(report, run.arm));
    }
  }

  void add(const std::string& label, const Value& value, int digits) {
    add_text(label, [&](const Runs& runs) { return with_spread(runs, value, digits); });
  }

  // Adds a row of the arms for which `has` is true; none if it is true for none.
  void add_where(Has has, const std::string& label, const Value& value, int digits) {
    if (!has_any(has)) return;
    add_text(label, [&](const Runs& runs) {
      return has(*runs[0]) ? with_spread(runs, value, digits) : std::string("-");
    });
  }

  void add_text(const std::string& label, const std::function<std::string(const Runs&)>& cell) {
    TableRow row{label, {}};
    for (const Runs& runs : arms_) row.cells.push_back(cell(runs));
    table_.rows.push_back(std::move(row));
  }

  bool has_any(Has has) const {
    return std::ranges::any_of(arms_, [&](const Runs& runs) { return has(*runs[0]); });
  }

  Table take() { return std::move(table_); }

 private:
  Table table_;
  std::vector<Runs> arms_;
};

void add_speed(TableMaker& table) {
  table.add(
      "iterations counted",
      [](const RunRecord& r) { return static_cast<double>(r.counted_iterations); }, 0);
  table.add(
      "images/s, all workers", [](const RunRecord& r) { return r.images_per_second(); }, 1);
  table.add("  each worker", of_workers([](const RankRecord& r) { return r.images_per_second; }),
            1);
  table.add(
      "  each host", [](const RunRecord& r) { return r.images_per_second_per_host(); }, 1);
  table.add("iteration, ms", of_workers([](const RankRecord& r) { return r.step_seconds * 1e3; }),
            1);
  for (const auto& row : kQuantiles) {
    const double fraction = row.second;
    table.add(
        row.first,
        [fraction](const RunRecord& r) { return 1e3 * quantile(r.counted_seconds(), fraction); },
        1);
  }
  for (std::size_t part = 0; part < kPartNames.size(); ++part) {
    const bool is_exposed = part == static_cast<std::size_t>(Part::exposed);
    table.add(is_exposed ? "  exposed communication" : fmt::format("  {}", kPartNames[part]),
              of_workers([part](const RankRecord& r) { return r.parts[part] * 1e3; }), 1);
  }
  const auto hides = [](const RunRecord& run) { return run.is_kolo() && run.stages == 0; };
  table.add_where(hides, "hidden communication, ms", of_workers([](const RankRecord& r) {
                    const double exposed = r.parts[static_cast<std::size_t>(Part::exposed)];
                    return std::max(0.0, r.in_flight - exposed) * 1e3;
                  }),
                  1);
}

// Absent if the network is not known.
void add_predictions(TableMaker& table) {
  const auto add = [&](const std::string& label, const Value& value) {
    table.add_where(is_predicted, label, value, 1);
  };
  const auto error = [](double predicted, double measured) {
    return measured > 0 ? 100 * (predicted / measured - 1) : 0;
  };
  const Value step = of_workers([](const RankRecord& r) { return r.step_seconds; });
  const Value exposed = of_workers(
      [](const RankRecord& r) { return r.parts[static_cast<std::size_t>(Part::exposed)]; });
  add("iteration predicted, ms", [](const RunRecord& r) { return r.predicted_step_seconds * 1e3; });
  add("  error, %", [=](const RunRecord& r) { return error(r.predicted_step_seconds, step(r)); });
  add("exposed predicted, ms", [](const RunRecord& r) { return r.predicted_exposed * 1e3; });
  add("  error, %", [=](const RunRecord& r) { return error(r.predicted_exposed, exposed(r)); });
}

void add_bytes(TableMaker& table, const Report& report) {
  double most = 0;
  for (const RunRecord& run : report.runs) {
    for (const RankRecord& rank : run.ranks) most = std::max(most, rank.bytes_sent / kMiB);
  }
  const int digits = most < 1 ? 4 : 2;
  table.add_where(is_of_kolo, "MiB sent per iteration, each worker",
                  of_workers([](const RankRecord& r) { return r.bytes_sent / kMiB; }), digits);
  table.add_where(is_of_kolo, "  by the formula",
                  of_workers([](const RankRecord& r) { return r.formula_sent / kMiB; }), digits);
  const auto of_servers = [](auto value) { return mean_of_ranks(false, value); };
  table.add_where(has_kolo_servers, "MiB sent per iteration, each server",
                  of_servers([](const RankRecord& r) { return r.bytes_sent / kMiB; }), digits);
  table.add_where(has_kolo_servers, "  by the formula",
                  of_servers([](const RankRecord& r) { return r.formula_sent / kMiB; }), digits);
}

void add_costs(TableMaker& table) {
  table.add(
      "cores busy, all workers", [](const RunRecord& r) { return r.busy_cores(true); }, 2);
  table.add_where(
      has_servers, "cores busy, all servers",
      [](const RunRecord& r) { return r.busy_cores(false); }, 2);
  table.add("peak memory of a worker, MiB",
            of_workers([](const RankRecord& r) { return r.peak_mib; }), 0);
  table.add_where(has_servers, "peak memory of a server, MiB",
                  mean_of_ranks(false, [](const RankRecord& r) { return r.peak_mib; }), 0);
  table.add("optimizer's state of a worker, MiB",
            of_workers([](const RankRecord& r) { return r.optimizer_mib; }), 2);
  table.add_where(has_servers, "optimizer's state of a server, MiB",
                  mean_of_ranks(false, [](const RankRecord& r) { return r.optimizer_mib; }), 2);
}

double mean_staleness(const RunRecord& run) {
  double sum = 0, gradients = 0;
  for (std::size_t s = 0; s < run.staleness.size(); ++s) {
    sum += static_cast<double>(s) * run.staleness[s];
    gradients += run.staleness[s];
  }
  return gradients > 0 ? sum / gradients : 0;
}

double largest_staleness(const RunRecord& run) {
  return run.staleness.empty() ? 0 : static_cast<double>(run.staleness.size() - 1);
}

double dropped_percent(const RunRecord& run) {
  const double all = run.gradients_applied + run.gradients_dropped;
  return all > 0 ? 100 * run.gradients_dropped / all : 0;
}

// Percent of gradients that were 0, 1, ... updates late; the last number counts all later ones.
std::string staleness_histogram(const Runs& runs) {
  constexpr std::size_t kShown = 6;
  std::vector<double> counts;
  double all = 0;
  for (const RunRecord* run : runs) {
    for (std::size_t s = 0; s < run->staleness.size(); ++s) {
      const std::size_t place = std::min(s, kShown - 1);
      counts.resize(std::max(counts.size(), place + 1));
      counts[place] += run->staleness[s];
      all += run->staleness[s];
    }
  }
  if (all == 0) return "-";
  std::vector<std::string> percents;
  for (const double one : counts) percents.push_back(fmt::format("{:.0f}", 100 * one / all));
  return fmt::format("{}", fmt::join(percents, "/"));
}

void add_serving(TableMaker& table) {
  table.add("workers idle, %", of_workers([](const RankRecord& r) {
              const double waiting =
                  r.parts[static_cast<std::size_t>(Part::exposed)] - r.exposed_in_backward;
              return r.step_seconds > 0 ? 100 * waiting / r.step_seconds : 0;
            }),
            0);
  table.add_where(has_servers, "servers idle, %",
                  mean_of_ranks(false,
                                [](const RankRecord& r) {
                                  const double idle =
                                      r.parts[static_cast<std::size_t>(Part::exposed)];
                                  return r.step_seconds > 0 ? 100 * idle / r.step_seconds : 0;
                                }),
                  0);
  if (!table.has_any(is_served)) return;
  table.add_where(is_served, "staleness of a gradient, mean", mean_staleness, 2);
  table.add_where(is_served, "  largest", largest_staleness, 0);
  table.add_text("  0/1/2/3/4/more updates, %", staleness_histogram);
  table.add_where(is_served, "gradients dropped, %", dropped_percent, 2);
}

bool is_pipeline(const RunRecord& run) { return run.stages > 0; }

double waiting_percent(const RankRecord& rank) {
  return rank.step_seconds > 0 ? 100 * rank.waiting_for_stages / rank.step_seconds : 0;
}

double computing_ms(const RankRecord& rank) {
  return 1e3 * (rank.parts[static_cast<std::size_t>(Part::forward)] +
                rank.parts[static_cast<std::size_t>(Part::backward)]);
}

struct StageRow {
  const char* name;
  double (*of)(const RankRecord& rank);
  int digits;
};
constexpr std::array<StageRow, 4> kStageRows{{
    {"forward and backward of each stage, ms", computing_ms, 1},
    {"MiB sent by each stage", [](const RankRecord& rank) { return rank.bytes_sent / kMiB; }, 2},
    {"peak memory of each stage, MiB", [](const RankRecord& rank) { return rank.peak_mib; }, 0},
    {"optimizer's state of each stage, MiB",
     [](const RankRecord& rank) { return rank.optimizer_mib; }, 2},
}};

// The largest of each stage, over replicas and runs.
std::string text_by_stage(const StageRow& row, const Runs& runs) {
  std::vector<double> largest(static_cast<std::size_t>(runs[0]->stages));
  for (const RunRecord* run : runs) {
    for (const RankRecord& rank : run->ranks) {
      double& value = largest[static_cast<std::size_t>(rank.rank % run->stages)];
      value = std::max(value, row.of(rank));
    }
  }
  std::vector<std::string> texts;
  for (const double value : largest) texts.push_back(fmt::format("{:.{}f}", value, row.digits));
  return fmt::format("{}", fmt::join(texts, "/"));
}

void add_pipelines(TableMaker& table) {
  if (!table.has_any(is_pipeline)) return;
  for (const StageRow& row : kStageRows) {
    table.add_text(row.name, [&row](const Runs& runs) {
      return is_pipeline(*runs[0]) ? text_by_stage(row, runs) : std::string("-");
    });
  }
  table.add_where(is_pipeline, "bubble, %", of_workers(waiting_percent), 1);
  table.add_where(
      is_pipeline, "  with equal stages and no communication",
      [](const RunRecord& r) {
        const auto micro_batches = static_cast<std::size_t>(r.micro_batches);
        return 100 * ideal_bubble(r.stages, micro_batches);
      },
      1);
}

bool is_clipped(const RunRecord& run) { return run.terms.contains("norm of gradients"); }

bool has_loss_scale(const RunRecord& run) {
  const auto format = run.terms.find("gradients are sent as");
  return format != run.terms.end() && format->second == "float16";
}

void add_updates(TableMaker& table) {
  table.add_where(
      is_clipped, "updates with clipped gradients",
      [](const RunRecord& r) { return r.updates_clipped; }, 0);
  table.add_where(
      has_loss_scale, "updates skipped, overflow of float16",
      [](const RunRecord& r) { return r.updates_skipped; }, 0);
}

void add_learning(TableMaker& table) {
  const auto last = [](const RunRecord& r) -> const EpochRecord& { return r.epochs.back(); };
  table.add(
      "training loss, first epoch", [](const RunRecord& r) { return r.epochs.front().train_loss; },
      4);
  table.add(
      "training loss, last epoch", [=](const RunRecord& r) { return last(r).train_loss; }, 4);
  table.add(
      "test loss", [=](const RunRecord& r) { return last(r).test_loss; }, 4);
  table.add(
      "test accuracy, %", [=](const RunRecord& r) { return last(r).test_accuracy * 100; }, 2);
}

// Test accuracy of the last evaluated epoch that had ended after `seconds` of training, in percent.
std::optional<double> accuracy_after(double seconds, const RunRecord& run) {
  std::optional<double> accuracy;
  for (const EpochRecord& epoch : run.epochs) {
    if (epoch.is_evaluated && epoch.training_seconds <= seconds)
      accuracy = 100 * epoch.test_accuracy;
  }
  return accuracy;
}

// The arms at equal seconds: at the end of the shortest training. Absent if no slower arm has an
// evaluated epoch by then.
void add_accuracy_at_equal_time(TableMaker& table, const Report& report) {
  double shortest = INFINITY;
  for (const RunRecord& run : report.runs) shortest = std::min(shortest, run.training_seconds);
  const auto is_evaluated = [&](const RunRecord& run) {
    return run.training_seconds > shortest && accuracy_after(shortest, run).has_value();
  };
  if (std::ranges::none_of(report.runs, is_evaluated)) return;
  table.add_text(fmt::format("  after {:.1f} s of training, %", shortest), [&](const Runs& runs) {
    const bool is_known = std::ranges::all_of(
        runs, [&](const RunRecord* run) { return accuracy_after(shortest, *run).has_value(); });
    if (!is_known) return std::string("-");
    return with_spread(
        runs, [&](const RunRecord& run) { return *accuracy_after(shortest, run); }, 2);
  });
}

std::string final_hashes(const Runs& runs) {
  if (!runs.front()->is_kolo()) return "-";
  std::vector<std::string> hashes;
  for (const RunRecord* run : runs) hashes.push_back(run->final_hash.substr(0, 8));
  return fmt::format("{}", fmt::join(hashes, " "));
}

}  // namespace

std::vector<const RunRecord*> runs_of(const Report& report, const std::string& arm) {
  std::vector<const RunRecord*> runs;
  for (const RunRecord& run : report.runs) {
    if (run.arm == arm) runs.push_back(&run);
  }
  return runs;
}

std::string with_spread(const std::vector<double>& values, int digits) {
  const auto count = static_cast<double>(values.size());
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / count;
  if (values.size() == 1) return fmt::format("{:.{}f}", mean, digits);
  if (values.size() == 2) {
    const auto [low, high] = std::minmax(values[0], values[1]);
    return fmt::format("{:.{}f} [{:.{}f}, {:.{}f}]", mean, digits, low, digits, high, digits);
  }
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return fmt::format("{:.{}f} ± {:.{}f}", mean, digits, std::sqrt(squares / (count - 1)), digits);
}

Table make_table(const Report& report) {
  TableMaker table(report);
  add_speed(table);
  add_predictions(table);
  add_bytes(table, report);
  add_costs(table);
  add_serving(table);
  add_updates(table);
  add_pipelines(table);
  add_learning(table);
  add_accuracy_at_equal_time(table, report);
  table.add(
      "seconds of training", [](const RunRecord& r) { return r.training_seconds; }, 1);
  table.add_text("final weights, hash", final_hashes);
  if (table.has_any([](const RunRecord& run) { return !run.is_kolo(); }))
    table.add_text("trained by", [](const Runs& runs) { return runs.front()->program; });
  if (table.has_any([](const RunRecord& run) { return !run.difference.empty(); })) {
    table.add_text("differs by its nature", [](const Runs& runs) {
      return runs.front()->difference.empty() ? "no" : runs.front()->difference;
    });
  }
  return table.take();
}

}  // namespace kolo::train
