#include "transports/ucx/endpoint_transports.h"

#include <algorithm>
#include <cstdint>
#include <sstream>

namespace kolo::inline v0::ucx {

namespace {

// These copy through sockets or queues, with any protocol.
constexpr std::string_view kCopying[] = {"tcp", "posix", "sysv", "self"};

constexpr std::string_view kQueues[] = {"posix", "sysv"};

// With these the kernel copies once from process to process. That pays from this size on.
constexpr std::string_view kFetching[] = {"cma", "knem", "xpmem"};
constexpr std::size_t kWorthFetching = 128 * 1024;

template <std::size_t kCount>
bool is_one_of(const std::string& carrier, const std::string_view (&names)[kCount]) {
  return std::find(std::begin(names), std::end(names), carrier) != std::end(names);
}

}  // namespace

// Parses lines such as:  lane[1]:  3:cma/memory.0 md[2] -> ...
std::vector<std::string> transports_in(std::string_view printed) {
  std::vector<std::string> carriers;
  std::istringstream lines{std::string(printed)};
  for (std::string line; std::getline(lines, line);) {
    const auto lane = line.find("lane[");
    if (lane == std::string::npos) continue;
    std::istringstream words(line.substr(lane));
    std::string name;
    std::string resource;
    words >> name >> resource;
    const auto colon = resource.find(':');
    const auto slash = resource.find('/');
    if (colon == std::string::npos || slash == std::string::npos || slash < colon) continue;
    carriers.push_back(resource.substr(colon + 1, slash - colon - 1));
  }
  return carriers;
}

// Parses lines such as:  #      resource 2  :  md 1  dev 2  flags -- posix/memory
std::vector<std::string> resources_in(std::string_view printed) {
  constexpr std::string_view kMark = "--";
  std::vector<std::string> resources;
  std::istringstream lines{std::string(printed)};
  for (std::string line; std::getline(lines, line);) {
    const auto mark = line.find(kMark);
    if (line.find("resource") == std::string::npos || mark == std::string::npos) continue;
    std::istringstream words(line.substr(mark + kMark.size()));
    std::string resource;
    words >> resource;
    if (const auto slash = resource.find('/'); slash != std::string::npos && slash > 0)
      resources.push_back(resource.substr(0, slash));
  }
  return resources;
}

bool has_queues(const std::vector<std::string>& resources) {
  return std::any_of(resources.begin(), resources.end(),
                     [](const std::string& each) { return is_one_of(each, kQueues); });
}

bool keep_sent(const std::vector<std::string>& carriers) {
  return carriers.empty() || std::find(carriers.begin(), carriers.end(), "tcp") != carriers.end();
}

std::size_t eager_bytes(const std::vector<std::string>& carriers) {
  std::size_t most = carriers.empty() ? 0 : SIZE_MAX;
  for (const std::string& carrier : carriers) {
    if (is_one_of(carrier, kCopying)) continue;
    most = std::min(most, is_one_of(carrier, kFetching) ? kWorthFetching : 0);
  }
  return most;
}

}  // namespace kolo::inline v0::ucx
