#include "bench/output/run_info.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <ctime>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>

#include "bench/measure/cores.h"

namespace kolo::bench {
namespace {

constexpr const char* kCommit =
#include "commit.inc"
    ;

#ifdef __clang__
constexpr const char* kCompiler = __VERSION__;  // __VERSION__ includes the name Clang
#else
constexpr const char* kCompiler = "GCC " __VERSION__;
#endif

// The KOLO_ variables of the environment, for the record only.
std::map<std::string, std::string> kolo_variables() {
  std::map<std::string, std::string> found;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    const auto name = text.substr(0, text.find('='));
    if (name.starts_with("KOLO_") && name != "KOLO_STORE" && name.size() < text.size())
      found.emplace(name, text.substr(name.size() + 1));
  }
  return found;
}

}  // namespace

nlohmann::ordered_json run_info() {
  utsname system{};
  uname(&system);
  nlohmann::ordered_json facts;
  facts["machine"] = describe_processor();
  facts["cores"] = available_cores().size();
  facts["kernel"] = fmt::format("{} {}", system.sysname, system.release);
  facts["compiler"] = kCompiler;
  facts["kolo"] = KOLO_VERSION;
  facts["commit"] = kCommit;
  facts["command"] = own_command();
  facts["environment"] = kolo_variables();
  facts["date"] = fmt::format("{:%Y-%m-%d %H:%M} UTC", fmt::gmtime(std::time(nullptr)));
  return facts;
}

std::string network_between_ranks() {
  const auto variables = kolo_variables();
  const auto found = variables.find("KOLO_BENCH_NETWORK");
  return found == variables.end() ? "" : found->second;
}

std::string own_version() { return fmt::format("kolo {}, commit {}", KOLO_VERSION, kCommit); }

std::string own_command() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::string words{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  while (!words.empty() && words.back() == '\0') words.pop_back();
  const auto end = words.find('\0');  // end of the program's path
  const auto slash = words.rfind('/', end);
  if (slash != std::string::npos) words.erase(0, slash + 1);
  for (char& c : words) c = c == '\0' || c == '\n' ? ' ' : c;
  return words;
}

}  // namespace kolo::bench
