// What a run prints: a table for people, with nccl-tests' columns, and JSON lines for programs.
#pragma once

#include <fstream>
#include <iosfwd>
#include <string>
#include <vector>

#include "bench/arguments.h"
#include "bench/measure.h"

namespace kolo::bench {

// One JSON line, without the newline.
std::string json_line(const Row& row);

// A file of JSON lines to append to, or standard output ("-"), or nothing ("").
class JsonLines {
 public:
  // std::invalid_argument where the file cannot be written.
  explicit JsonLines(const std::string& path);
  void add(const std::string& line);

 private:
  std::ofstream file_;
  std::ostream* out_ = nullptr;
};

class Report {
 public:
  Report(const Arguments& arguments, std::ostream& table, JsonLines& json);

  void begin(double cache_line_us);
  // The rows of one size: kolo's, and then the peer's if there is one.
  void add(const std::vector<Row>& rows);
  void note(const std::string& text);
  // Returns how many elements were wrong.
  std::uint64_t end();

 private:
  const Arguments& arguments_;
  std::ostream& table_;
  JsonLines& json_;
  std::uint64_t wrong_ = 0;
  double bus_sum_ = 0;
  int rows_ = 0;
};

}  // namespace kolo::bench
