#include "bench/commands/overlap.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <ostream>
#include <utility>

#include "bench/commands/computation.h"
#include "bench/measure/call_form.h"
#include "bench/measure/cores.h"
#include "bench/measure/statistics.h"
#include "bench/output/run_info.h"

namespace kolo::bench {
namespace {

using Microseconds = std::chrono::duration<double, std::micro>;

constexpr int kComputations = 15;

// An operation with a computation beside it, at first of 0 rounds.
class Overlapped final : public Library {
 public:
  Overlapped(std::shared_ptr<Communicator> communicator, const LibraryRequest& request,
             Progress progress, bool computes, std::shared_ptr<Computation> computation)
      : algorithm_(request.algorithm),
        communicator_(std::move(communicator)),
        progress_(progress),
        computes_(computes),
        computation_(std::move(computation)),
        caller_(communicator_, request.form, by(algorithm_)) {}

  std::string name() const override { return "kolo"; }
  std::string transport() const override { return std::string(communicator_->transport()); }
  std::string carrier() const override { return communicator_->carrier(); }
  void write_records() override { communicator_->write_records(); }
  std::string algorithm(const Problem& problem) const override {
    if (!algorithm_.empty()) return algorithm_;
    return std::string(communicator_->algorithm(
        problem.collective, problem.count * element_bytes(problem.type), problem.type, problem.op));
  }
  std::string objection(const Problem&) const override { return {}; }

  void run(const Problem& problem, const void* in, void* out) override {
    Work work = caller_.begin(problem, in, out);
    if (rounds_ > 0 && progress_ == Progress::kPolling) {
      computation_->run(rounds_, [&work] { work.test(); });
    } else if (rounds_ > 0) {
      computation_->run(rounds_);
    }
    work.wait();
  }

  Progress progress() const { return progress_; }
  void set_rounds(std::uint64_t rounds) { rounds_ = computes_ ? rounds : 0; }
  Computation& computation() { return *computation_; }

 private:
  static CallOptions by(const std::string& algorithm) {
    CallOptions call;
    call.algorithm = algorithm;
    return call;
  }

  std::string algorithm_;
  std::shared_ptr<Communicator> communicator_;
  Progress progress_;
  bool computes_;
  std::shared_ptr<Computation> computation_;
  AsyncCaller caller_;
  std::uint64_t rounds_ = 0;
};

// Times of several runs, each the longest of the ranks' times.
std::vector<double> time_computation(RankGroup& group, Computation& computation,
                                     std::uint64_t rounds) {
  std::vector<double> times;
  for (int i = 0; i < kComputations; ++i) {
    group.wait();
    const auto begin = Clock::now();
    computation.run(rounds);
    times.push_back(Microseconds(Clock::now() - begin).count());
  }
  return group.largest(times);
}

// Fits its column even if another program had a core meanwhile.
std::string percent(double share) {
  constexpr double kLeast = -9.99;
  return share < kLeast ? "< -999%" : fmt::format("{:.0f} %", 100 * share);
}

double share_of(const OverlapRow& row) {
  return hidden(row.alone.time_us.median, row.compute_us, row.together.time_us.median);
}

std::size_t by_width(const Arguments& arguments) {
  constexpr std::size_t kLeast = 18;
  return bench::by_width(arguments.problem.collective, arguments.algorithm, kLeast);
}

void print(const OverlapRow& row, std::size_t by_width, std::ostream& table) {
  table << fmt::format(
      " {:>11} {:>{}} {:>{}} {:>8} {:>9} {:>9} {:>9} {:>9} {:>7} {:>6} {:>5} {:>9}\n",
      row.together.bytes, row.together.transport, over_width({row.together.transport}),
      row.together.algorithm, by_width, to_string(row.progress),
      time_text(row.alone.time_us.median), time_text(row.compute_us),
      time_text(row.together.time_us.median),
      time_text(row.together.time_us.median - row.compute_us), percent(share_of(row)),
      wrong_text(row.together), row.together.iterations, line_text(row.together.distance));
}

void print_heading(const Arguments& arguments, const Library& own, double cache_line_us,
                   std::ostream& table) {
  table << fmt::format("# kolo-bench {} --overlap: {}{}, {}\n# {}; {}\n# {}\n", arguments.command,
                       ranks_text(arguments.ranks, own.transport(), own.carrier()),
                       servers_text(arguments.problem), to_string(arguments.form),
                       describe_machine(), surroundings_text(cache_line_us), own_version());
  if (const std::string text = iterations_text(arguments); !text.empty())
    table << "# " << text << '\n';
  if (const std::string text = whole_sizes_text(arguments); !text.empty())
    table << "# " << text << '\n';
  table << fmt::format(
      "#{:>11} {:>{}} {:>{}} {:>8} {:>9} {:>9} {:>9} {:>9} {:>7} {:>6} {:>5} {:>9}\n", "bytes",
      "over", over_width({own.transport()}), "by", by_width(arguments), "progress", "alone",
      "compute", "together", "exposed", "hidden", "wrong", "iter", "line");
}

}  // namespace

std::string_view to_string(Progress progress) {
  switch (progress) {
    case Progress::kNone:
      return "none";
    case Progress::kPolling:
      return "polling";
    case Progress::kThread:
      return "thread";
  }
  return "?";
}

double hidden(double alone_us, double compute_us, double together_us) {
  const double shorter = std::min(alone_us, compute_us);
  if (shorter <= 0) return 0;
  return (alone_us + compute_us - together_us) / shorter;
}

std::string json_line(const OverlapRow& row) {
  auto line = nlohmann::ordered_json::parse(json_line(row.together));
  line["progress"] = to_string(row.progress);
  line["alone_us"] = row.alone.time_us.median;
  line["compute_us"] = row.compute_us;
  line["hidden"] = share_of(row);
  return line.dump();
}

// The first library is the operation alone; then one for each kind of progress.
std::vector<std::unique_ptr<Library>> make_overlapped(const LibraryRequest& request) {
  LibraryRequest threaded = request;
  threaded.has_progress_thread = true;
  const auto plain = connect_kolo(request);
  const auto served = connect_kolo(threaded);
  const auto computation = std::make_shared<Computation>();
  std::vector<std::unique_ptr<Library>> libraries;
  const auto add = [&](const auto& communicator, Progress progress, bool computes) {
    libraries.push_back(
        std::make_unique<Overlapped>(communicator, request, progress, computes, computation));
  };
  add(plain, Progress::kNone, false);
  add(plain, Progress::kNone, true);
  add(plain, Progress::kPolling, true);
  add(served, Progress::kThread, true);
  return libraries;
}

std::vector<OverlapRow> measure_overlap(RankGroup& group, Bench& bench,
                                        const std::vector<std::unique_ptr<Library>>& libraries,
                                        std::size_t bytes) {
  const Row calibration = bench.measure({libraries.front().get()}, bytes).front();
  Computation& computation = dynamic_cast<Overlapped&>(*libraries.front()).computation();
  const std::uint64_t rounds = computation.rounds_in(calibration.time_us.median);
  std::vector<double> computed = time_computation(group, computation, rounds);
  std::vector<Library*> all;
  for (const auto& library : libraries) {
    dynamic_cast<Overlapped&>(*library).set_rounds(rounds);
    all.push_back(library.get());
  }
  std::vector<Row> rows = bench.measure(all, bytes);
  if (calibration.wrong) *rows.front().wrong += *calibration.wrong;
  const std::vector<double> after = time_computation(group, computation, rounds);
  computed.insert(computed.end(), after.begin(), after.end());
  std::vector<OverlapRow> result;
  for (std::size_t i = 1; i < rows.size(); ++i) {
    const Progress progress = dynamic_cast<const Overlapped&>(*libraries[i]).progress();
    result.push_back({progress, rows.front(), rows[i], quantile(computed, 0.5)});
  }
  return result;
}

std::uint64_t count_wrong(const std::vector<OverlapRow>& rows) {
  std::uint64_t wrong = rows.front().alone.wrong.value_or(0);
  for (const OverlapRow& row : rows) wrong += row.together.wrong.value_or(0);
  return wrong;
}

std::uint64_t run_overlap(RankGroup& group, const Arguments& arguments,
                          const std::vector<std::unique_ptr<Library>>& libraries,
                          const std::vector<std::size_t>& sizes, std::ostream& table,
                          JsonLines& json) {
  Bench bench(group, arguments);
  const double cache_line_us = group.cache_line_round_trip();
  const bool prints = group.rank() == 0;
  if (prints) print_heading(arguments, *libraries.front(), cache_line_us, table);
  std::uint64_t wrong = 0;
  LineNotes line_notes;
  for (const std::size_t bytes : sizes) {
    const std::vector<OverlapRow> rows = measure_overlap(group, bench, libraries, bytes);
    wrong += count_wrong(rows);
    for (const OverlapRow& row : rows) {
      line_notes.add(row.together.distance, row.together.left_out);
      if (!prints) continue;
      print(row, by_width(arguments), table);
      flush_or_throw(table, kTable);
      json.add(json_line(row));
    }
  }
  if (prints) {
    table << "# times in us, medians; compute: the computation by itself; exposed: together - "
             "compute\n# hidden: (alone + compute - together) / min(alone, compute)\n";
    for (const std::string& text : line_notes.texts()) table << "# " << text << '\n';
    flush_or_throw(table, kTable);
  }
  return wrong;
}

}  // namespace kolo::bench
