#include "train/strategies/arm.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <span>
#include <stdexcept>

#include "transports/base/suggestion.h"

namespace kolo::train {
namespace {

struct StrategyName {
  std::string_view name;
  std::string_view synonym;  // the name in other projects' scripts
};
constexpr std::array<StrategyName, 12> kStrategies{{
    {"ring", "ring_all_reduce"},
    {"ps", "param_server"},
    {"tree", ""},
    {"hierarchical", ""},
    {"auto", ""},
    {"sharded", ""},
    {"local-sgd", ""},
    {"pipeline", ""},
    {"dataparallel", "data_parallel"},
    {"torch-ddp", ""},
    {"torch-ddp-kolo", ""},
    {"torch-ps", ""},
}};

constexpr int kMostLocalSteps = 1'000'000;
constexpr int kMostStages = 1024;
constexpr int kMaxServers = 64;
constexpr int kUsualShards = 2;

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t at = text.find(separator);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

std::string_view without_spaces(std::string_view word) {
  const std::size_t begin = std::min(word.find_first_not_of(' '), word.size());
  const std::size_t end = word.find_last_not_of(' ') + 1;
  return word.substr(begin, std::max(begin, end) - begin);
}

std::string find_strategy(std::string_view word) {
  for (const StrategyName& known : kStrategies) {
    if (word == known.name || (!word.empty() && word == known.synonym))
      return std::string(known.name);
  }
  std::vector<std::string> names;
  for (const StrategyName& known : kStrategies) {
    names.emplace_back(known.name);
    if (!known.synonym.empty()) names.emplace_back(known.synonym);
  }
  throw std::invalid_argument(
      fmt::format("--strategies: unknown strategy '{}'; expected one of {}{}", word,
                  list_of_strategies(), did_you_mean(suggested_word(word, names))));
}

int parse_servers(std::string_view arm, std::string_view text) {
  int value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc{} || end != text.data() + text.size() || value < 1 || value > kMaxServers) {
    throw std::invalid_argument(fmt::format(
        "--strategies: '{}': servers={}: expected a number from 1 to {}", arm, text, kMaxServers));
  }
  return value;
}

// `where`: the flag, or the arm that contains the word; for messages.
UpdateAt parse_update_at(std::string_view where, std::string_view text) {
  if (text == "worker") return UpdateAt::worker;
  if (text == "server") return UpdateAt::server;
  const std::vector<std::string> places{"worker", "server"};
  throw std::invalid_argument(
      fmt::format("{}: unknown place '{}'; expected one of worker, server{}", where, text,
                  did_you_mean(suggested_word(text, places))));
}

// Suggests the intended word: "sharded" for "shardd", "servers=3" for "server=3",
// "optimizer=server" for "optimiser=server".
std::string meant_word(std::string_view word, const std::vector<std::string>& known) {
  const std::size_t value = std::min(word.find('='), word.size());
  const bool has_value = value < word.size();
  const std::string begin = std::string(word.substr(0, value)) + (has_value ? "=" : "");
  const std::string meant = suggested_word(begin, known);
  if (!has_value || meant.empty()) return meant;
  return meant.ends_with('=') ? meant + std::string(word.substr(value + 1)) : "";
}

// Throws: `word` is none of `known`, the words of `strategy`.
[[noreturn]] void refuse_word(std::string_view arm, std::string_view word,
                              std::string_view strategy, const std::vector<std::string>& known,
                              std::string_view all) {
  const std::string meant = meant_word(word, known);
  if (meant.empty() && word.find('=') != std::string_view::npos) {
    throw std::invalid_argument(fmt::format(
        "--strategies: the arm '{}' sets {}, but arms may differ in their strategy only: {} takes "
        "{}; settings of the experiment, such as --lr, are flags for all arms",
        arm, word, strategy, all));
  }
  throw std::invalid_argument(fmt::format("--strategies: unknown word '{}' in '{}'; {} takes {}{}",
                                          word, arm, strategy, all, did_you_mean(meant)));
}

struct Words {
  std::string mode;  // empty: not given in the arm
  int servers = 0;
  UpdateAt update_at = UpdateAt::worker;
  bool is_update_given = false;  // in the arm
  std::string rule;              // the word that set `consistency`
  Consistency consistency;
};

constexpr std::array<std::string_view, 4> kModes{"dedicated", "sharded", "everywhere", "split"};
constexpr std::string_view kWordsOfPs =
    "dedicated, sharded, everywhere, split, servers=N, optimizer=worker, optimizer=server, async, "
    "ssp=S, backup=B";
constexpr int kLargestBound = 1000;

void read_rule(std::string_view arm, std::string_view word, Words& words) {
  using Kind = Consistency::Kind;
  if (!words.rule.empty() && words.rule != word) {
    throw std::invalid_argument(
        fmt::format("--strategies: '{}': {} and {} exclude each other", arm, words.rule, word));
  }
  words.rule = word;
  words.consistency.kind = word == "async"               ? Kind::kAsynchronous
                           : word.starts_with("backup=") ? Kind::kBackup
                                                         : Kind::kBounded;
  if (word == "async") return;
  const std::string_view number = word.substr(word.find('=') + 1);
  int& bound = words.consistency.bound;
  const auto [end, code] = std::from_chars(number.data(), number.data() + number.size(), bound);
  if (code != std::errc{} || end != number.data() + number.size() || bound < 0 ||
      bound > kLargestBound) {
    throw std::invalid_argument(fmt::format(
        "--strategies: '{}': {}: expected a number from 0 to {}", arm, word, kLargestBound));
  }
}

void read_word(std::string_view arm, std::string_view word, Words& words) {
  if (std::ranges::find(kModes, word) != kModes.end()) {
    if (!words.mode.empty() && words.mode != word) {
      throw std::invalid_argument(
          fmt::format("--strategies: '{}': {} and {} exclude each other", arm, words.mode, word));
    }
    words.mode = word;
  } else if (word.starts_with("servers=")) {
    words.servers = parse_servers(arm, word.substr(8));
  } else if (word.starts_with("optimizer=")) {
    words.update_at =
        parse_update_at(fmt::format("--strategies: '{}': optimizer", arm), word.substr(10));
    words.is_update_given = true;
  } else if (word == "async" || word.starts_with("ssp=") || word.starts_with("backup=")) {
    read_rule(arm, word, words);
  } else {
    refuse_word(arm, word, "ps",
                {"dedicated", "sharded", "everywhere", "split", "servers=", "optimizer=", "async",
                 "ssp=", "backup="},
                kWordsOfPs);
  }
}

// The word of an arm; empty for the synchronous rule.
std::string rule_word(const Consistency& rule) {
  switch (rule.kind) {
    case Consistency::Kind::kSynchronous:
      break;
    case Consistency::Kind::kAsynchronous:
      return "async";
    case Consistency::Kind::kBounded:
      return fmt::format("ssp={}", rule.bound);
    case Consistency::Kind::kBackup:
      return fmt::format("backup={}", rule.bound);
  }
  return "";
}

std::string_view sync_name(Sync sync) { return kSyncNames[static_cast<std::size_t>(sync)]; }

Sync parse_sync(std::string_view arm, std::string_view text) {
  const auto found = std::ranges::find(kSyncNames, text);
  if (found != kSyncNames.end()) return static_cast<Sync>(found - kSyncNames.begin());
  const std::vector<std::string> known(kSyncNames.begin(), kSyncNames.end());
  throw std::invalid_argument(
      fmt::format("--strategies: '{}': unknown sync '{}'; expected one of {}{}", arm, text,
                  fmt::join(kSyncNames, ", "), did_you_mean(suggested_word(text, known))));
}

constexpr std::string_view kSyncWord = "sync=";

Arm all_reduce_arm(std::string_view text, const std::string& strategy,
                   std::span<const std::string_view> words) {
  Arm arm;
  arm.strategy = strategy;
  for (const std::string_view word : words) {
    if (!word.starts_with(kSyncWord)) {
      refuse_word(text, word, strategy, {std::string(kSyncWord)},
                  fmt::format("sync={}", fmt::join(kSyncNames, ", sync=")));
    }
    arm.sync = parse_sync(text, word.substr(kSyncWord.size()));
  }
  return arm;
}

// The number that is the only word of an arm. Throws with `expected` if it is not in [least, most].
int only_number(std::string_view text, std::span<const std::string_view> words, int least, int most,
                const std::string& expected) {
  const std::string_view word = words.size() == 1 ? words.front() : "";
  int value = 0;
  const auto [end, code] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (code == std::errc{} && end == word.data() + word.size() && value >= least && value <= most)
    return value;
  throw std::invalid_argument(fmt::format("--strategies: '{}': expected {}", text, expected));
}

Arm local_sgd_arm(std::string_view text, std::span<const std::string_view> words) {
  Arm arm;
  arm.strategy = "local-sgd";
  arm.local_steps =
      only_number(text, words, 1, kMostLocalSteps,
                  fmt::format("local-sgd:H, where the parameters are averaged every H iterations, "
                              "H from 1 to {}, such as local-sgd:8",
                              kMostLocalSteps));
  return arm;
}

Arm pipeline_arm(std::string_view text, std::span<const std::string_view> words) {
  Arm arm;
  arm.strategy = "pipeline";
  arm.stages = only_number(text, words, 2, kMostStages,
                           fmt::format("pipeline:S, where S ranks share a model, S from 2 to {}, "
                                       "such as pipeline:2",
                                       kMostStages));
  return arm;
}

Arm arm_without_words(std::string_view text, const std::string& strategy,
                      std::span<const std::string_view> words) {
  if (!words.empty()) {
    throw std::invalid_argument(fmt::format("--strategies: '{}': {} takes no words; remove '{}'",
                                            text, strategy, words.front()));
  }
  Arm arm;
  arm.strategy = strategy;
  if (strategy == "sharded") arm.update_at = UpdateAt::shard;
  if (strategy == "torch-ps") {
    arm.placement = ServerPlacement::dedicated;
    arm.servers = 1;
    arm.update_at = UpdateAt::server;
  }
  return arm;
}

Arm parameter_server_arm(std::string_view text, const Words& words) {
  Arm arm;
  arm.strategy = "ps";
  arm.update_at = words.update_at;
  arm.rule = words.consistency;
  if (arm.is_served()) {
    if (words.mode == "everywhere" || words.mode == "split") {
      throw std::invalid_argument(
          fmt::format("--strategies: '{}': {} needs dedicated servers, and {} has servers in "
                      "workers",
                      text, words.rule, words.mode));
    }
    if (words.is_update_given && words.update_at == UpdateAt::worker) {
      throw std::invalid_argument(fmt::format(
          "--strategies: '{}': with {} the servers apply the optimizer; remove optimizer=worker",
          text, words.rule));
    }
    arm.update_at = UpdateAt::server;
  }
  if (words.mode == "everywhere") {
    if (words.servers > 0) {
      throw std::invalid_argument(fmt::format(
          "--strategies: '{}' sets a number of servers, but 'everywhere' has one in every rank",
          text));
    }
    arm.placement = ServerPlacement::everywhere;
    return arm;
  }
  arm.placement = words.mode == "split" ? ServerPlacement::split : ServerPlacement::dedicated;
  arm.is_called_sharded = words.mode == "sharded";
  arm.servers = words.servers > 0 ? words.servers : (arm.is_called_sharded ? kUsualShards : 1);
  if (arm.is_called_sharded && arm.servers < 2) {
    throw std::invalid_argument(
        fmt::format("--strategies: '{}': sharded needs at least two servers", text));
  }
  return arm;
}

// Throws if a word occurs twice, also with different values.
void require_words_once(std::string_view arm, std::span<const std::string_view> words) {
  const auto kind = [](std::string_view word) { return word.substr(0, word.find('=')); };
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::span<const std::string_view> before = words.first(i);
    if (std::ranges::find(before, kind(words[i]), kind) == before.end()) continue;
    throw std::invalid_argument(
        fmt::format("--strategies: '{}' has {} twice; remove one", arm, kind(words[i])));
  }
}

Arm parse_arm(std::string_view text, const ArmDefaults& defaults) {
  const std::vector<std::string_view> parts = split(text, ':');
  const std::string strategy = find_strategy(parts.front());
  const std::span<const std::string_view> behind = std::span(parts).subspan(1);
  if (strategy == "local-sgd") return local_sgd_arm(text, behind);
  if (strategy == "pipeline") return pipeline_arm(text, behind);
  if (strategy == "dataparallel" || strategy == "sharded" || strategy.starts_with("torch-"))
    return arm_without_words(text, strategy, behind);
  require_words_once(text, behind);
  if (strategy != "ps") return all_reduce_arm(text, strategy, behind);
  Words words;
  words.update_at = parse_update_at("--ps-optimizer", defaults.ps_optimizer);
  for (std::size_t i = 1; i < parts.size(); ++i) read_word(text, parts[i], words);
  if (words.mode.empty()) {
    words.mode = defaults.ps_mode;
    if (words.servers == 0 && words.mode != "everywhere") words.servers = defaults.servers;
  }
  return parameter_server_arm(text, words);
}

}  // namespace

std::string list_of_strategies() {
  std::string text;
  for (const StrategyName& known : kStrategies) {
    text += fmt::format("{}{}", text.empty() ? "" : ", ", known.name);
    if (!known.synonym.empty()) text += fmt::format(" ({})", known.synonym);
  }
  return text +
         "; ps takes words: ps:dedicated, ps:sharded, ps:everywhere, ps:split, ps:servers=3, "
         "ps:optimizer=server, ps:async, ps:ssp=3, ps:backup=1; local-sgd takes a number of steps: "
         "local-sgd:8, and pipeline a number of stages: pipeline:2; ring, tree, hierarchical and "
         "auto take sync: ring:sync=naive, flat, "
         "overlap, bucketed, "
         "prioritized, fusion";
}

std::string Arm::difference() const {
  if (local_steps > 0) return fmt::format("{} local steps", local_steps);
  if (rule.bound == 0 && rule.kind != Consistency::Kind::kAsynchronous) return "";
  switch (rule.kind) {
    case Consistency::Kind::kSynchronous:
      break;
    case Consistency::Kind::kAsynchronous:
      return "stale gradients";
    case Consistency::Kind::kBounded:
      return fmt::format("workers up to {} apart", rule.bound);
    case Consistency::Kind::kBackup:
      return fmt::format("drops the last {}", rule.bound);
  }
  return "";
}

std::string Arm::name() const {
  std::string text = strategy;
  if (local_steps > 0) text += fmt::format(":{}", local_steps);
  if (stages > 0) text += fmt::format(":{}", stages);
  if (sync != Sync::bucketed) text += fmt::format(":sync={}", sync_name(sync));
  if (placement == ServerPlacement::everywhere) text += ":everywhere";
  if (placement == ServerPlacement::split) text += ":split";
  if (is_called_sharded) text += ":sharded";
  const int usual = is_called_sharded ? kUsualShards : 1;
  if (servers > 0 && servers != usual) text += fmt::format(":servers={}", servers);
  if (is_served()) return text + ":" + rule_word(rule);
  if (!is_torch() && update_at == UpdateAt::server) text += ":optimizer=server";
  return text;
}

std::string Arm::full_name() const {
  if (strategy == "local-sgd" || strategy == "dataparallel" || strategy == "sharded" ||
      strategy == "pipeline" || is_torch())
    return name();
  if (placement == ServerPlacement::none)
    return fmt::format("{}:sync={}", strategy, sync_name(sync));
  const std::string update = update_at == UpdateAt::server ? "server" : "worker";
  if (placement == ServerPlacement::everywhere) return strategy + ":everywhere:optimizer=" + update;
  const std::string_view mode = placement == ServerPlacement::split ? "split"
                                : is_called_sharded                 ? "sharded"
                                                                    : "dedicated";
  const std::string text =
      fmt::format("{}:{}:servers={}:optimizer={}", strategy, mode, servers, update);
  return is_served() ? text + ":" + rule_word(rule) : text;
}

std::vector<Arm> parse_arms(std::string_view text, const ArmDefaults& defaults) {
  if (std::ranges::find(kModes, defaults.ps_mode) == kModes.end()) {
    const std::vector<std::string> modes(kModes.begin(), kModes.end());
    throw std::invalid_argument(fmt::format("--ps-mode: unknown mode '{}'; expected one of {}{}",
                                            defaults.ps_mode, fmt::join(kModes, ", "),
                                            did_you_mean(suggested_word(defaults.ps_mode, modes))));
  }
  std::vector<Arm> arms;
  for (const std::string_view part : split(text, ',')) {
    const std::string_view word = without_spaces(part);
    if (word.empty()) {
      throw std::invalid_argument(
          fmt::format("--strategies '{}': an arm is missing beside a comma", text));
    }
    const Arm arm = parse_arm(word, defaults);
    if (std::find(arms.begin(), arms.end(), arm) != arms.end()) {
      throw std::invalid_argument(
          fmt::format("--strategies: '{}' occurs twice in '{}'", arm.name(), text));
    }
    arms.push_back(arm);
  }
  return arms;
}

}  // namespace kolo::train
