#include "transports/posix/host/caches.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <optional>

namespace kolo::inline v0::posix {

namespace {

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// Takes a number off the front.
std::optional<std::size_t> take_number(std::string_view& text) {
  std::size_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

// "32768K", "1M", "512".
std::size_t parse_bytes(std::string_view text) {
  const auto number = take_number(text);
  if (!number) return 0;
  if (text == "K") return *number << 10;
  if (text == "M") return *number << 20;
  if (text == "G") return *number << 30;
  return text.empty() ? *number : 0;
}

// The cache of the highest level that a core has for data.
Cache last_level_of(const std::string& folder) {
  Cache last;
  std::size_t highest = 0;
  for (int index = 0;; ++index) {
    const std::string cache = folder + "/cache/index" + std::to_string(index);
    const std::string level_text = first_line(cache + "/level");
    std::string_view rest = level_text;
    const auto level = take_number(rest);
    if (!level) return last;
    if (*level <= highest || first_line(cache + "/type") == "Instruction") continue;
    highest = *level;
    last = {parse_bytes(first_line(cache + "/size")),
            parse_cores(first_line(cache + "/shared_cpu_list"))};
  }
}

}  // namespace

std::vector<Cache> last_level_caches(const std::vector<int>& cores, const std::string& folder) {
  std::vector<Cache> caches;
  for (const int core : cores) {
    const auto has_core = [core](const Cache& cache) {
      return std::ranges::binary_search(cache.cores, core);
    };
    if (std::ranges::any_of(caches, has_core)) continue;
    Cache cache = last_level_of(folder + "/cpu" + std::to_string(core));
    if (cache.bytes > 0 && has_core(cache)) caches.push_back(std::move(cache));
  }
  return caches;
}

std::size_t share_of_caches(const std::vector<Cache>& caches, const std::vector<int>& cores,
                            int ranks) {
  std::size_t share = 0;
  for (const Cache& cache : caches) {
    const auto used = static_cast<std::size_t>(std::ranges::count_if(
        cores, [&](int core) { return std::ranges::binary_search(cache.cores, core); }));
    if (used == 0) continue;
    const std::size_t sharers =
        (static_cast<std::size_t>(ranks) * used + cores.size() - 1) / cores.size();
    share = std::max(share, cache.bytes / std::max<std::size_t>(sharers, 1));
  }
  return share;
}

std::vector<int> parse_cores(std::string_view text) {
  std::vector<int> cores;
  while (true) {
    const auto first = take_number(text);
    auto last = first;
    if (first && text.starts_with('-')) {
      text.remove_prefix(1);
      last = take_number(text);
    }
    if (!last || *last < *first || *last > 1 << 20) return {};
    for (std::size_t core = *first; core <= *last; ++core) cores.push_back(static_cast<int>(core));
    if (text.empty()) break;
    if (!text.starts_with(',')) return {};
    text.remove_prefix(1);
  }
  std::ranges::sort(cores);
  return cores;
}

}  // namespace kolo::inline v0::posix
