// Timelines in tests: where they are written, and how tests read them and profiles.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "collectives/profile.h"

namespace kolo::test {

// A temporary folder.
class Folder {
 public:
  Folder();
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  std::string file(const std::string& name) const { return (path_ / name).string(); }
  std::set<std::string> names() const;

 private:
  std::filesystem::path path_;
};

nlohmann::json read_timeline(const std::string& file);

// Bytes or segments of the steps that send payload; `prefix`: that of their names.
struct Sent {
  std::uint64_t bytes = 0;
  std::uint64_t segments = 0;
};
Sent sent_by(const std::vector<StepProfile>& profile, const std::string& prefix = "");

}  // namespace kolo::test
