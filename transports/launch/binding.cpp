#include "transports/launch/binding.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <string>

#include "transports/posix/host/cores.h"

namespace kolo::inline v0::launch {
namespace {

constexpr const char* kNodes = "/sys/devices/system/node/";

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// False if the text is not a number.
bool read_number(std::string_view text, int& number) {
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && rest == end && number >= 0;
}

std::vector<int> concatenated(const std::vector<std::vector<int>>& nodes) {
  std::vector<int> all;
  for (const std::vector<int>& cores : nodes) all.insert(all.end(), cores.begin(), cores.end());
  return all;
}

// The first thread of a core's physical core.
int first_sibling(int core) {
  const std::string path =
      "/sys/devices/system/cpu/cpu" + std::to_string(core) + "/topology/thread_siblings_list";
  const std::vector<int> siblings = parse_core_list(first_line(path));
  return siblings.empty() ? core : siblings.front();
}

bool holds_any(const std::vector<int>& cores, const std::vector<int>& of) {
  return std::ranges::find_first_of(cores, of) != cores.end();
}

}  // namespace

std::vector<int> parse_core_list(std::string_view text) {
  constexpr int kMost = 1 << 16;
  std::vector<int> cores;
  while (!text.empty()) {
    const std::string_view range = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), range.size() + 1));
    const auto dash = range.find('-');
    int first = 0;
    int last = 0;
    if (!read_number(range.substr(0, dash), first)) return {};
    last = first;
    if (dash != std::string_view::npos && !read_number(range.substr(dash + 1), last)) return {};
    if (last < first || last >= kMost) return {};
    for (int core = first; core <= last; ++core) cores.push_back(core);
  }
  return cores;
}

std::vector<std::vector<int>> cores_by_node() {
  const std::vector<int> usable = posix::affinity_cores();
  std::vector<std::vector<int>> nodes;
  std::size_t found = 0;
  for (const int node : parse_core_list(first_line(std::string(kNodes) + "online"))) {
    std::vector<int> cores;
    const std::string list = std::string(kNodes) + "node" + std::to_string(node) + "/cpulist";
    for (const int core : parse_core_list(first_line(list))) {
      if (std::ranges::binary_search(usable, core)) cores.push_back(core);
    }
    std::ranges::stable_sort(cores, {}, first_sibling);
    found += cores.size();
    if (!cores.empty()) nodes.push_back(std::move(cores));
  }
  if (found != usable.size()) return {usable};
  return nodes;
}

std::vector<std::vector<int>> bind_ranks(const std::vector<std::vector<int>>& nodes, int ranks,
                                         Binding binding) {
  const std::vector<int> all = concatenated(nodes);
  const auto of = static_cast<std::size_t>(ranks);
  if (binding == Binding::kNone || (binding == Binding::kAuto && of > all.size())) return {};
  const bool is_by_node = binding == Binding::kNodes || of > all.size();
  std::vector<std::vector<int>> bound;
  for (std::size_t rank = 0; rank < of; ++rank) {
    const std::size_t begin = rank * all.size() / of;
    const std::size_t end = std::max(begin + 1, (rank + 1) * all.size() / of);
    std::vector<int> share(all.begin() + static_cast<std::ptrdiff_t>(begin),
                           all.begin() + static_cast<std::ptrdiff_t>(end));
    if (is_by_node) {
      std::vector<int> whole;
      for (const std::vector<int>& cores : nodes) {
        if (holds_any(cores, share)) whole.insert(whole.end(), cores.begin(), cores.end());
      }
      share = std::move(whole);
    }
    bound.push_back(std::move(share));
  }
  return bound;
}

bool is_bound_by_parent() {
  return posix::affinity_cores().size() < posix::affinity_cores(getppid()).size();
}

}  // namespace kolo::inline v0::launch
