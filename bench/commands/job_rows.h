// Memory file to which the jobs of a command append JSON lines. It is gone when this process ends.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "transports/posix/descriptor.h"

namespace kolo::bench {

// A hidden option that tune and table pass to the jobs they start: the file for their lines.
inline constexpr const char* kPointsFlag = "--points";

class JobRows {
 public:
  JobRows();

  // The path under which the jobs open it.
  std::string path() const;
  std::vector<nlohmann::ordered_json> read() const;

 private:
  posix::Descriptor file_;
};

}  // namespace kolo::bench
