// Output of a run: a table for people with nccl-tests' columns, and JSON lines for programs.
#pragma once

#include <fstream>
#include <iosfwd>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "bench/cli/arguments.h"
#include "bench/measure/measure.h"

namespace kolo::bench {

// Texts of a row's columns; "-" for missing values.
std::string wrong_text(const Row& row);
// Lines with the host's time to enqueue a call, for rows on a device's stream.
std::vector<std::string> enqueue_lines(const std::vector<Row>& rows);
std::string type_text(const Row& row);
std::string op_text(const Row& row);
std::string time_text(double us);
// GB/s; "-" if no data moves.
std::string bandwidth_text(const std::optional<double>& gigabytes_per_second);
// The median of the probes, or "moved" or "disturbed"; "-" without probes.
std::string line_text(const CoreDistance& distance);
// p99, or "-" if there are too few iterations for it.
std::string p99_text(double us, std::size_t iterations);

// Notes below the table: the meaning of "moved" and "disturbed" in the column `line`, and the
// number of rows that leave out passes.
class LineNotes {
 public:
  // Adds a row, which leaves out that many iterations.
  void add(const CoreDistance& distance, std::size_t left_out = 0);
  std::vector<std::string> texts() const;

 private:
  bool has_moved_ = false;
  bool is_disturbed_ = false;
  std::size_t rows_ = 0;
  std::size_t rows_in_part_ = 0;  // rows that leave out passes
};

// The distance of the ranks' cores as text; no number if the probe was disturbed.
std::string round_trip_text(double cache_line_us);

// The same, and the network between the ranks if link.py set it.
std::string surroundings_text(double cache_line_us);

// A warning about the planner's costs, measured between the probes of `distance`; empty if there is
// none.
std::string costs_warning(const CoreDistance& distance);

// "2 ranks over tcp"; with a carrier "2 ranks over ofi (tcp;ofi_rxm)".
std::string ranks_text(int ranks, std::string_view transport, const std::string& carrier);

// ", 1 server among them" for a parameter server's collectives; empty for others.
std::string servers_text(const Problem& problem);

// "--iterations 5: 1 in each of 4 passes, 4 in all" if the numbers differ; otherwise empty.
std::string iterations_text(const Arguments& arguments);

// "sizes are multiples of 4 bytes (float32): 7 is measured as 4" if a size is rounded; otherwise
// empty.
std::string whole_sizes_text(const Arguments& arguments);

// Width of a column for these words, at least `least`.
std::size_t width_of(std::span<const std::string> words, std::size_t least);

// Width of the column `over`: "tcp,1Gbit,1ms" is longer than its heading.
std::size_t over_width(const std::vector<std::string>& transports);

// Width of a column with kolo's algorithms: the longest that may run, or the requested one.
std::size_t by_width(Collective collective, const std::string& algorithm, std::size_t least);

// "openmpi (over shm)" if kolo's transport (`own`) differs; otherwise "openmpi".
std::string peer_over(const std::string& peer, const std::string& transport,
                      const std::string& own);

// The ratio of two times: "1.25"; at most six characters up to a million: "12041".
std::string ratio_text(double ratio);

// ", persistent"; empty for blocking calls.
std::string form_text(CallForm form);

// ", results that are ordered"; empty for kFast.
std::string mode_text(Reproducibility mode);

// One JSON line, without the newline.
std::string json_line(const Row& row);

// Throws Error kSystem with `where` if the output was not written, as on a full disk.
void flush_or_throw(std::ostream& out, const std::string& where);

inline constexpr const char* kTable = "the table";

// Output for JSON lines: a file to append to, standard output ("-"), or none ("").
class JsonLines {
 public:
  // std::invalid_argument if the file cannot be written.
  explicit JsonLines(const std::string& path);
  // Throws as flush_or_throw does.
  void add(const std::string& line);

 private:
  std::string path_;
  std::ofstream file_;
  std::ostream* out_ = nullptr;
};

// Warns on standard error that rows are appended to a non-empty file. Called once, by the process
// that starts the run, as its ranks write to the same file.
void warn_about_existing_rows(const std::string& json);

// Throws as flush_or_throw does.
class Report {
 public:
  Report(const Arguments& arguments, std::ostream& table, JsonLines& json);

  // `own` is kolo. `versions` are the known versions of the libraries. `peers` are names for the
  // heading, such as "gloo (over tcp)" if kolo's transport differs. `cautions` are warnings about
  // rows.
  void begin(const Library& own, double cache_line_us, const std::vector<std::string>& versions,
             const std::vector<std::string>& peers, const std::vector<std::string>& cautions = {});
  // Adds the rows of one size: kolo's, then the peers'. Each is one line, at most 160 columns wide
  // unless a name is long.
  void add(const std::vector<Row>& rows, const char* mark = "");
  // Adds the rows of one size for several algorithms of kolo; the fastest is marked.
  void add_alternatives(const std::vector<Row>& rows);
  void note(const std::string& text);
  // Prints a left-out library once, however many sizes there are.
  void leave_out(const std::string& library, const std::string& objection);
  // Prints the summary; returns the number of wrong elements, including the peers'.
  std::uint64_t end();

 private:
  // Widths of columns that hold names.
  struct Widths {
    std::size_t type = 0;
    std::size_t op = 0;
    std::size_t over = 0;
    std::size_t by = 0;
  };

  std::string heading() const;
  // From the column `time` on, kolo's and peers' lines have the same columns.
  std::string own_line(const Row& row, const char* mark) const;
  // A line below kolo's of the same size, with the ratio instead of the limit.
  std::string peer_line(const Row& own, const Row& row, bool is_best) const;

  const Arguments& arguments_;
  std::ostream& table_;
  JsonLines& json_;
  std::map<std::string, std::uint64_t> wrong_by_;  // name_of
  std::set<std::string> left_out_;
  LineNotes line_notes_;
  bool has_ratios_ = false;
  bool has_limits_ = false;
  bool has_beaten_limits_ = false;
  Widths widths_;
  double bus_sum_ = 0;
  int moving_rows_ = 0;  // rows with a bandwidth
};

}  // namespace kolo::bench
