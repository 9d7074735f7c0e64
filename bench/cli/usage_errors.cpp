#include "bench/cli/usage_errors.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "bench/cli/commands.h"
#include "transports/base/suggestion.h"

namespace kolo::bench {
namespace {

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands({})) names.push_back(command->get_name());
  return names;
}

// "; did you mean --model?"; empty if no option is similar.
std::string guess(const CLI::App& command, const std::string& name) {
  std::vector<std::string> known;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& word : option->get_lnames()) known.push_back("--" + word);
  }
  return did_you_mean(nearest_word(name, known));
}

// CLI11 lists all words from the first unknown one on, in reverse. This finds the first unknown
// word. `first` is the index after the command.
std::string first_unexpected(const CLI::App& command, int first, int argc,
                             const char* const* argv) {
  std::string stray;
  for (int i = first; i < argc; ++i) {
    const std::string word = argv[i];
    if (word.size() < 2 || word[0] != '-') {
      if (stray.empty()) stray = word;
      continue;
    }
    const bool is_long = word[1] == '-';
    const std::string name = is_long ? word.substr(0, word.find('=')) : word.substr(0, 2);
    const CLI::Option* option = command.get_option_no_throw(name);
    if (option == nullptr) return fmt::format("has no option '{}'{}", name, guess(command, name));
    if (option->get_items_expected_max() > 0 && name == word) ++i;  // its value
  }
  return fmt::format("does not expect '{}'", stray);
}

// The option of `command` that CLI11's text names first; null if there is none.
const CLI::Option* named_option(const CLI::App& command, std::string_view text) {
  const auto begin = text.find('-');
  if (begin == std::string_view::npos) return nullptr;
  const std::string_view word = text.substr(begin);
  return command.get_option_no_throw(std::string(word.substr(0, word.find_first_of(" :,"))));
}

std::string what_it_takes(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  if (type.find("INT") != std::string::npos) return "a whole number";
  return type.find("FLOAT") != std::string::npos ? "a number" : "another value";
}

std::string explain_value(const CLI::ParseError& error, const CLI::App& command) {
  const std::string text = error.what();
  const CLI::Option* option = named_option(command, text);
  if (option == nullptr) return text;
  const std::string name = option->get_name();
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr) return name + " needs a value";
  const auto equals = text.find(" = ");
  if (dynamic_cast<const CLI::ConversionError*>(&error) == nullptr || equals == std::string::npos)
    return text;
  const std::string value = text.substr(equals + 3);
  return fmt::format("{} {}: expected {}{}", name, value, what_it_takes(*option),
                     value.find(',') == std::string::npos ? "" : ", one at a time");
}

std::string what_is_missing(const std::string& command) {
  if (command == "plot") return " needs a file of JSON lines, as --json writes them";
  if (command == "diff") return " needs two files of JSON lines, as --json writes them";
  if (command == "timeline") return " needs files, as KOLO_TIMELINE leaves them";
  if (command == "ps") return " needs push, pull or push-pull";
  if (command == "p2p") return " needs latency, bandwidth, bidirectional or message-rate";
  return " needs a collective, as allreduce";
}

}  // namespace

void require_command(const CLI::App& app, int argc, const char* const* argv) {
  if (argc >= 2 && argv[1][0] == '-') return;
  const auto names = command_names(app);
  if (argc >= 2 && std::find(names.begin(), names.end(), short_command(argv[1])) != names.end())
    return;
  constexpr Synonym kElsewhere[] = {{"bcast", "broadcast"}};
  const std::string guessed =
      argc < 2 ? "" : did_you_mean(suggested_word(argv[1], names, kElsewhere));
  throw std::invalid_argument(fmt::format(
      "{}; expected one of {}{}; see kolo-bench --help",
      argc < 2 ? "a command is missing" : fmt::format("there is no command '{}'", argv[1]),
      fmt::join(names, ", "), guessed));
}

std::string explain(const CLI::ParseError& error, const CLI::App& app, int argc,
                    const char* const* argv) {
  const auto commands = app.get_subcommands();
  if (commands.empty()) return fmt::format("{}; see kolo-bench --help", error.what());
  const auto inner = commands.front()->get_subcommands();  // of ps
  const CLI::App& command = inner.empty() ? *commands.front() : *inner.front();
  const std::string name =
      (inner.empty() ? "" : commands.front()->get_name() + " ") + command.get_name();
  std::string what = ": " + explain_value(error, command);
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr)
    what = " " + first_unexpected(command, inner.empty() ? 2 : 3, argc, argv);
  if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr) what = what_is_missing(name);
  return fmt::format("{}{}; see kolo-bench {} --help", name, what, name);
}

}  // namespace kolo::bench
