#include "bench/commands/job_rows.h"

#include <fmt/format.h>
#include <unistd.h>

#include <fstream>

#include "bench/measure/memory_file.h"

namespace kolo::bench {

JobRows::JobRows() : file_(make_memory_file(0, "a file for the lines of the jobs")) {}

std::string JobRows::path() const { return fmt::format("/proc/{}/fd/{}", getpid(), file_.get()); }

std::vector<nlohmann::ordered_json> JobRows::read() const {
  std::vector<nlohmann::ordered_json> rows;
  std::ifstream file(path());
  for (std::string line; std::getline(file, line);)
    rows.push_back(nlohmann::ordered_json::parse(line));
  return rows;
}

}  // namespace kolo::bench
