#include "train/crossover/options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>
#include <utility>

#include "train/flags/flag_parser.h"
#include "train/flags/flag_values.h"
#include "train/options.h"
#include "transports/settings.h"

namespace kolo::train {
namespace {

constexpr const char* kUsualBytes = "16MiB";
constexpr std::int64_t kMostBytes = std::int64_t{1} << 34;
constexpr std::array<std::pair<std::string_view, std::int64_t>, 5> kUnits{
    {{"B", 1}, {"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"", 1}}};

// The size of whole floats in bytes, of "16MiB" or "4096". Returns 0 if the text is none.
std::int64_t size_of(const std::string& text) {
  std::int64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, code] = std::from_chars(text.data(), end, number);
  const std::string_view word(stop, static_cast<std::size_t>(end - stop));
  const auto unit = std::ranges::find(kUnits, word, &decltype(kUnits)::value_type::first);
  if (code != std::errc{} || unit == kUnits.end()) return 0;
  if (number < 0 || number > kMostBytes / unit->second) return 0;
  constexpr std::int64_t kFloat = sizeof(float);
  return number * unit->second / kFloat * kFloat;
}

std::string why_no_size(const std::string& text) {
  if (size_of(text) > 0) return "";
  return fmt::format("expected a size in B, KiB, MiB or GiB, from 4B to 16GiB, got '{}'", text);
}

Network network_of_job(const std::string& shape) {
  if (shape.empty()) {
    throw UsageError(
        "--shape is missing: a prediction needs the rate and the latency of the network, as "
        "--shape 1Gbit,1ms");
  }
  const auto network = network_of(shape);
  if (network && network->bytes_per_second > 0) return *network;
  throw UsageError(
      fmt::format("--shape {}: expected one rate for all pairs of ranks, as 1Gbit,1ms", shape));
}

}  // namespace

CrossoverOptions parse_crossover(const std::vector<std::string>& arguments) {
  CrossoverOptions o;
  std::string bytes = kUsualBytes;
  CLI::App app(
      "Measures one exchange of gradients, without training: by a ring, and by 1 to RANKS servers",
      "kolo-train crossover");
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  app.add_option("--ranks", o.ranks, "workers [4]; as many processes run in addition as servers")
      ->check(whole_number(2, 32));
  app.add_option("--bytes", bytes, fmt::format("size of the gradients [{}]", kUsualBytes))
      ->check(why_no_size);
  app.add_option("--shape", o.shape, "simulated network, as 1Gbit,1ms [KOLO_SHAPE]");
  app.add_option(
      "--transport", o.transport,
      "auto, a transport of this build, two as shm+tcp, or a library (./libx.so) [auto]");
  app.add_option("--report", o.report, "folder for report.json, report.md and the plot [none]")
      ->check(nonempty_text("a folder"));
  o.help = parse_flags(app, arguments);
  if (!o.help.empty()) return o;
  o.bytes = size_of(bytes);
  Options training;
  training.transport = o.transport;
  training.shape = o.shape;
  check_transport(training);
  o.shape = read_settings().shape;
  o.network = network_of_job(o.shape);
  return o;
}

}  // namespace kolo::train
