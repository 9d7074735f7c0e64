#include "train/checkpoint/gradient_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <functional>
#include <vector>

#include "train/checkpoint/optimizer_state.h"

namespace kolo::train {
namespace {

constexpr const char* kScale = "loss_scale";
constexpr const char* kAtScale = "updates_at_loss_scale";
constexpr const char* kSkipped = "updates_skipped";
constexpr const char* kUnsentWorkers = "unsent_workers";
constexpr double kLargestScale = 0x1p126;
constexpr std::int64_t kMostUpdates = std::int64_t{1} << 53;

template <typename Number>
Number number_in(const SafetensorsFile& file, const char* name, Number least, Number most) {
  const std::string& text = file.metadata().at(name);
  Number number{};
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (code == std::errc() && end == text.data() + text.size() && number >= least && number <= most)
    return number;
  throw CheckpointError(
      fmt::format("{}: '{}' in the metadata is '{}', expected a number from {} to {}", file.path(),
                  name, text, least, most));
}

std::int64_t count_in(const SafetensorsFile& file, const char* name) {
  if (!file.metadata().contains(name)) return 0;
  return number_in<std::int64_t>(file, name, 0, kMostUpdates);
}

}  // namespace

std::string unsent_name(int worker) { return name_at("unsent", worker); }

void collect_unsent(Communicator& workers, std::span<const float> mine, ArenaState& state) {
  for (int owner = 0; owner < workers.size(); ++owner) {
    std::vector<std::int32_t> bits(mine.size());
    if (owner == workers.rank())
      std::ranges::transform(mine, bits.begin(),
                             [](float value) { return std::bit_cast<std::int32_t>(value); });
    collect_bits(workers, bits, unsent_name(owner), state);
  }
}

void distribute_unsent(Communicator& workers, const ArenaState& state, std::span<float> mine) {
  std::int32_t saved = 0;
  while (state.contains(unsent_name(saved))) ++saved;
  workers.broadcast(std::span<std::int32_t>(&saved, 1));
  const bool is_sum = saved != workers.size();
  std::ranges::fill(mine, 0.0F);
  for (int owner = 0; owner < saved; ++owner) {
    std::vector<float> arena(mine.size());
    if (workers.rank() == 0) arena = state.at(unsent_name(owner));
    workers.broadcast(std::span<float>(arena));
    if (!is_sum && workers.rank() == owner) std::ranges::copy(arena, mine.begin());
    if (is_sum && workers.rank() == 0)
      std::ranges::transform(mine, arena, mine.begin(), std::plus{});
  }
}

SavedLossScale loss_scale_in(const SafetensorsFile& file) {
  SavedLossScale saved{.since_change = count_in(file, kAtScale),
                       .skipped = count_in(file, kSkipped)};
  if (file.metadata().contains(kScale))
    saved.scale = number_in(file, kScale, GradientUpdate::kLeastScale, kLargestScale);
  return saved;
}

void require_all_unsent(const SafetensorsFile& file, std::span<const std::string> states) {
  const std::int64_t workers = count_in(file, kUnsentWorkers);
  std::int64_t found = 0;
  const auto is_there = [&](int worker) {
    return std::ranges::find(states, unsent_name(worker)) != states.end();
  };
  while (is_there(static_cast<int>(found))) ++found;
  if (found == workers) return;
  throw CheckpointError(
      fmt::format("{}: its metadata name the unsent gradients of {} workers, but it has those of "
                  "{}; use another checkpoint",
                  file.path(), workers, found));
}

void add_loss_scale(RunFacts& facts, const GradientUpdate& update) {
  const UpdateStatistics& statistics = update.statistics();
  if (const std::int64_t skipped = update.skipped_of_training(); skipped > 0)
    facts[kSkipped] = fmt::format("{}", skipped);
  if (statistics.scale == 0) return;
  facts[kScale] = fmt::format("{}", statistics.scale);
  facts[kAtScale] = fmt::format("{}", statistics.since_change);
}

void add_unsent_workers(RunFacts& facts, int workers) {
  facts[kUnsentWorkers] = fmt::format("{}", workers);
}

void restore_loss_scale(Communicator& communicator, const SafetensorsFile* file,
                        GradientUpdate& update) {
  std::array<double, 3> numbers{};
  if (file != nullptr) {
    const SavedLossScale saved = loss_scale_in(*file);
    numbers = {saved.scale, static_cast<double>(saved.since_change),
               static_cast<double>(saved.skipped)};
  }
  communicator.broadcast(std::span<double>(numbers));
  update.restore(numbers[0], static_cast<std::int64_t>(numbers[1]),
                 static_cast<std::int64_t>(numbers[2]));
}

}  // namespace kolo::train
