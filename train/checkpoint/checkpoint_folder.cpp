#include <fmt/format.h>

#include <charconv>
#include <filesystem>
#include <iterator>
#include <system_error>

#include "train/checkpoint/checkpoint.h"

namespace kolo::train {
namespace {

namespace fs = std::filesystem;
constexpr std::string_view kBegin = "iteration-";
constexpr std::string_view kEnd = ".safetensors";

}  // namespace

std::string checkpoint_name(const std::string& folder, std::int64_t iteration) {
  return (fs::path(folder) / fmt::format("{}{:08}{}", kBegin, iteration, kEnd)).string();
}

std::map<std::int64_t, std::string> checkpoints_in(const std::string& folder) {
  std::map<std::int64_t, std::string> found;
  std::error_code ignored;  // a folder that is not there has none
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(kBegin) || !name.ends_with(kEnd)) continue;
    const char* const end = name.data() + name.size() - kEnd.size();
    std::int64_t iteration = 0;
    const auto [stop, code] = std::from_chars(name.data() + kBegin.size(), end, iteration);
    if (code == std::errc{} && stop == end) found[iteration] = entry.path().string();
  }
  return found;
}

std::string checkpoint_at(const std::string& place) {
  std::error_code code;
  if (!fs::is_directory(place, code)) return place;
  const auto found = checkpoints_in(place);
  if (found.empty())
    throw CheckpointError(
        fmt::format("{}: the folder has no checkpoint (iteration-N.safetensors)", place));
  return found.rbegin()->second;
}

void prune_checkpoints(const std::string& folder, int kept) {
  const auto found = checkpoints_in(folder);
  auto left = static_cast<std::ptrdiff_t>(found.size()) - kept;
  std::error_code ignored;  // one that cannot be deleted does no harm
  for (auto one = found.begin(); left > 0; ++one, --left) fs::remove(one->second, ignored);
}

}  // namespace kolo::train
