// What a run prints: a table for people, with nccl-tests' columns, and JSON lines for programs.
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

// Words of a row; "-" for what it does not have.
std::string wrong_text(const Row& row);
// Of rows that were given to a device's stream: what that took the host.
std::vector<std::string> enqueue_lines(const std::vector<Row>& rows);
std::string type_text(const Row& row);
std::string op_text(const Row& row);
std::string time_text(double us);
// GB/s; "-" where nothing moves.
std::string bandwidth_text(const std::optional<double>& gigabytes_per_second);
// The median of the probes, or "moved" or "disturbed" in its place; "-" without probes.
std::string line_text(const CoreDistance& distance);
// Of so many iterations: few have no hundredth.
std::string p99_text(double us, std::size_t iterations);

// What the words mean that rows had in the place of a time in the column `line`, and what was left
// out so that a row is of one distance; a text for each.
class LineNotes {
 public:
  // Of a row, which leaves out so many iterations.
  void add(const CoreDistance& distance, std::size_t left_out = 0);
  std::vector<std::string> texts() const;

 private:
  bool has_moved_ = false;
  bool is_disturbed_ = false;
  std::size_t rows_ = 0;
  std::size_t rows_in_part_ = 0;  // which leave out something
};

// How far apart the cores of the ranks are; no figure where the probe was disturbed.
std::string round_trip_text(double cache_line_us);

// That, and what network is between them where link.py says so.
std::string surroundings_text(double cache_line_us);

// What is wrong with costs that the planner measured between the probes of `distance`; empty where
// nothing is.
std::string costs_warning(const CoreDistance& distance);

// "2 ranks over tcp"; with a carrier "2 ranks over ofi (tcp;ofi_rxm)".
std::string ranks_text(int ranks, std::string_view transport, const std::string& carrier);

// ", 1 server among them", of a parameter server's collectives; nothing for others.
std::string servers_text(const Problem& problem);

// "--iterations 5: 1 in each of 4 passes, 4 in all", where that is not what was asked for; else
// nothing.
std::string iterations_text(const Arguments& arguments);

// "sizes are multiples of 4 bytes (float32): 7 is measured as 4", where a size is not measured as
// it was asked for; else nothing.
std::string whole_sizes_text(const Arguments& arguments);

// How wide a column is that holds such words, and is `least` wide.
std::size_t width_of(std::span<const std::string> words, std::size_t least);

// Of the column `over`: "tcp,1Gbit,1ms" is longer than its heading.
std::size_t over_width(const std::vector<std::string>& transports);

// Of a column with kolo's algorithms for a collective: the longest of what may run, or that which
// was asked for.
std::size_t by_width(Collective collective, const std::string& algorithm, std::size_t least);

// "openmpi (over shm)" where `own`, which kolo runs over, is another; else "openmpi".
std::string peer_over(const std::string& peer, const std::string& transport,
                      const std::string& own);

// Of two times: "1.25", and no more than six letters up to a million: "12041".
std::string ratio_text(double ratio);

// ", persistent"; nothing for blocking calls.
std::string form_text(CallForm form);

// ", results that are ordered"; nothing for those that are fast.
std::string mode_text(Reproducibility mode);

// One JSON line, without the newline.
std::string json_line(const Row& row);

// Error kSystem that names `where` if what was written did not get there: a full disk.
void flush_or_throw(std::ostream& out, const std::string& where);

inline constexpr const char* kTable = "the table";

// A file of JSON lines to append to, or standard output ("-"), or nothing ("").
class JsonLines {
 public:
  // std::invalid_argument where the file cannot be written.
  explicit JsonLines(const std::string& path);
  // Throws as flush_or_throw does.
  void add(const std::string& line);

 private:
  std::string path_;
  std::ofstream file_;
  std::ostream* out_ = nullptr;
};

// Says on standard error that rows will stand behind those of another run, where the file of --json
// is there and not empty. For who starts a run, once: its ranks write to the same file.
void warn_about_existing_rows(const std::string& json);

// Throws as flush_or_throw does.
class Report {
 public:
  Report(const Arguments& arguments, std::ostream& table, JsonLines& json);

  // `own`: kolo. `versions`: those of the libraries, as far as they tell. `peers`: as the heading
  // names them, "gloo (over tcp)" where that is not what kolo runs over. `cautions`: what to know
  // before the rows are read.
  void begin(const Library& own, double cache_line_us, const std::vector<std::string>& versions,
             const std::vector<std::string>& peers, const std::vector<std::string>& cautions = {});
  // The rows of one size: kolo's, and then those of the peers that took part, each a line of at
  // most 160 columns where no name in it is long.
  void add(const std::vector<Row>& rows, const char* mark = "");
  // The rows of one size by several algorithms of kolo's, the fastest marked.
  void add_alternatives(const std::vector<Row>& rows);
  void note(const std::string& text);
  // Says it once, however many sizes there are.
  void leave_out(const std::string& library, const std::string& objection);
  // Returns how many elements were wrong, the peers' included.
  std::uint64_t end();

 private:
  // How wide columns are that hold names, which differ in length.
  struct Widths {
    std::size_t type = 0;
    std::size_t op = 0;
    std::size_t over = 0;
    std::size_t by = 0;
  };

  std::string heading() const;
  // From the time on, the columns are the same for kolo and for peers.
  std::string own_line(const Row& row, const char* mark) const;
  // Below kolo's of the same size; in the place of the limit there is the ratio.
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
  int moving_rows_ = 0;  // that have a bandwidth
};

}  // namespace kolo::bench
