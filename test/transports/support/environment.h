// Environment variables of a job, set by a test.
#pragma once

#include <cstdlib>
#include <functional>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>

namespace kolo::test {

// Sets variables of this process for the length of a test.
class Environment {
 public:
  explicit Environment(std::map<std::string, std::string> variables) {
    for (const char* name : {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR",
                             "MASTER_PORT", "KOLO_STORE"})
      keep(name);
    for (const auto& [name, value] : variables) {
      keep(name);
      ::setenv(name.c_str(), value.c_str(), 1);
    }
  }
  ~Environment() {
    for (const auto& [name, value] : old_) {
      if (value) {
        ::setenv(name.c_str(), value->c_str(), 1);
      } else {
        ::unsetenv(name.c_str());
      }
    }
  }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  void keep(const std::string& name) {
    const char* old = std::getenv(name.c_str());
    old_.emplace(name, old == nullptr ? std::nullopt : std::optional<std::string>(old));
    ::unsetenv(name.c_str());
  }

  std::map<std::string, std::optional<std::string>> old_;
};

// The message of the exception that the call throws.
inline std::string refusal_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "nothing was refused";
}

}  // namespace kolo::test
