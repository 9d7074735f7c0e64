#include "train/experiments/options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <optional>

#include "train/experiment/arm_runner.h"
#include "train/flags/flag_parser.h"
#include "train/flags/flag_values.h"

namespace kolo::train {
namespace {

constexpr std::int64_t kLargest = 1 << 24;

// The numbers of "64,128"; nothing if the text is no such list.
std::optional<std::vector<std::int64_t>> list_of(std::string_view text) {
  std::vector<std::int64_t> values;
  const char* const end = text.data() + text.size();
  for (const char* begin = text.data();; ++begin) {
    std::int64_t value = 0;
    const auto [stop, code] = std::from_chars(begin, end, value);
    if (code != std::errc{} || value < 1 || value > kLargest) return std::nullopt;
    values.push_back(value);
    if (stop == end) break;
    if (*stop != ',') return std::nullopt;
    begin = stop;
  }
  std::ranges::sort(values);
  const auto same = std::ranges::unique(values);
  values.erase(same.begin(), same.end());
  return values;
}

// How much longer one point takes than another, if a sample takes as long in all.
double weight_of(const Options& o) {
  const double samples = o.steps > 0
                             ? static_cast<double>(o.steps * o.samples_per_iteration())
                             : static_cast<double>(o.epochs) * static_cast<double>(o.train_size);
  return std::max(1.0, samples);  // 0: the size of the data is not known
}

}  // namespace

void add_list_flag(CLI::App& app, const std::string& names, const std::string& description,
                   const std::string& usual, ExperimentOptions& options) {
  options.values = *list_of(usual);
  app.add_option_function<std::string>(
         names, [&options](const std::string& text) { options.values = *list_of(text); },
         fmt::format("{} [{}]", description, usual))
      ->check([usual](const std::string& text) {
        return list_of(text) ? ""
                             : fmt::format(
                                   "expected whole numbers from 1 to {}, as {}, got "
                                   "'{}'",
                                   kLargest, usual, text);
      });
}

std::optional<std::string> value_of(const std::vector<std::string>& words, std::string_view flag) {
  std::optional<std::string> value;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string name = flag_name(words[i]);
    if (name != flag) continue;
    if (name.size() < words[i].size()) {
      value = words[i].substr(name.size() + 1);
    } else {
      value = i + 1 < words.size() ? words[i + 1] : "";
    }
  }
  return value;
}

bool has_flag(const std::vector<std::string>& words, std::string_view flag) {
  return value_of(words, flag).has_value();
}

std::vector<std::string> speed_defaults(const ExperimentOptions& options) {
  std::vector<std::string> words{"--test-size=64", "--eval-every=1000000"};
  if (!has_flag(options.training, "--epochs")) words.emplace_back("--steps=15");
  return words;
}

ExperimentOptions parse_experiment(const Experiment& experiment,
                                   const std::vector<std::string>& given) {
  ExperimentOptions options;
  const std::string name(experiment.name);
  CLI::App app(fmt::format("{}\n\nAlso takes the flags of compare, for all points: see kolo-train "
                           "compare --help",
                           experiment.purpose),
               "kolo-train " + name);
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  app.allow_extras();
  experiment.add_flags(app, options);
  options.report = "report-" + name;
  bool has_no_report = false;
  app.add_option(
         "--report", options.report,
         fmt::format("folder for the results; a second start goes on there [{}]", options.report))
      ->check(nonempty_text("a folder; --no-report writes none"));
  app.add_flag("--no-report", has_no_report, "no folder, only the table");
  add_config_flag(app);
  options.help = parse_flags(app, with_config_flags(app, given, OtherKeys::allowed));
  if (!options.help.empty()) return options;
  if (has_no_report && app.count("--report") > 0)
    throw UsageError("--no-report cannot be combined with --report; remove one of them");
  if (has_no_report) options.report.clear();
  options.training = app.remaining();
  for (const char* const flag : {"--save", "--resume"}) {
    if (!has_flag(options.training, flag)) continue;
    throw UsageError(
        fmt::format("{} does not use {}: its points would share the checkpoints", name, flag));
  }
  for (const char* const flag : {"--profile", "--timeline"}) {
    if (!has_flag(options.training, flag)) continue;
    throw UsageError(fmt::format(
        "{0} does not use {1}: its report has no times of layers; use compare {1}", name, flag));
  }
  for (const FixedFlag& flag : experiment.fixed) {
    if (!has_flag(options.training, flag.name)) continue;
    throw UsageError(fmt::format("{} sets {} itself; {}", name, flag.name, flag.instead));
  }
  return options;
}

std::vector<Point> checked_points(const Experiment& experiment, const ExperimentOptions& options) {
  std::vector<Point> points = experiment.plan(options);
  for (Point& point : points) {
    std::vector<std::string> words{std::string(experiment.name)};
    for (const auto& part : {experiment.defaults(options), options.training, point.arguments})
      words.insert(words.end(), part.begin(), part.end());
    words.emplace_back("--no-report");
    point.arguments = std::move(words);
    point.options = parse_options(point.arguments).options;
    point.weight = weight_of(point.options);
    check_data(point.options);
  }
  check_transport(points.front().options);
  return points;
}

}  // namespace kolo::train
