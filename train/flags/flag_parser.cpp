#include "train/flags/flag_parser.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "train/options.h"
#include "transports/base/suggestion.h"

namespace kolo::train {
namespace {

// "; did you mean --model?", or nothing if no flag is similar.
std::string guess(const CLI::App& app, const std::string& word) {
  std::vector<std::string> known;
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue;  // not shown
    for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
  }
  return did_you_mean(nearest_word(word.substr(0, word.find('=')), known));
}

// "--config FILE", as given.
std::string name_of_config(const CLI::App& app) {
  return fmt::format("--config {}", app.get_config_ptr()->as<std::string>());
}

// The message for a file of --config. CLI11 names the key at the end of its own, or before a colon;
// "[name]" is the key "name.++".
std::string config_refusal(const CLI::App& app, const CLI::ConfigError& error) {
  const std::string text = error.what();
  const std::size_t colon = text.find(": ");
  std::string key =
      colon == std::string::npos ? text.substr(text.rfind(' ') + 1) : text.substr(0, colon);
  if (key.ends_with(".++")) key = fmt::format("[{}]", key.substr(0, key.size() - 3));
  return fmt::format("{}: unknown key '{}'{}", name_of_config(app), key, guess(app, "--" + key));
}

// The first unexpected flag, or else the first unexpected word: a word may be the value of an
// unexpected flag before it.
std::string first_unexpected(const CLI::App& app) {
  const std::vector<std::string> unexpected = app.remaining();
  const auto flag = std::ranges::find_if(
      unexpected, [](const std::string& word) { return word.starts_with("-"); });
  return flag == unexpected.end() ? unexpected.front() : *flag;
}

}  // namespace

std::string parse_flags(CLI::App& app, const std::vector<std::string>& arguments) {
  const std::string& command = arguments[0];
  try {
    std::vector<std::string> rest(arguments.rbegin(), arguments.rend() - 1);
    app.parse(rest);  // CLI11 expects reverse order
  } catch (const CLI::CallForHelp&) {
    return app.help();
  } catch (const CLI::ExtrasError&) {
    const std::string word = first_unexpected(app);
    throw UsageError(fmt::format("{0} does not expect '{1}'{2}; see kolo-train {0} --help", command,
                                 word, word.starts_with("--") ? guess(app, word) : ""));
  } catch (const CLI::ConfigError& error) {
    throw UsageError(config_refusal(app, error));
  } catch (const CLI::FileError&) {
    throw UsageError(fmt::format("{}: it cannot be read", name_of_config(app)));
  } catch (const CLI::ArgumentMismatch& error) {
    const std::string text = error.what();
    if (!text.ends_with("missing")) throw UsageError(text);  // "--ranks: 1 required INT missing"
    throw UsageError(fmt::format("{} needs a value; see kolo-train {} --help",
                                 text.substr(0, text.find_first_of(": ")), command));
  } catch (const CLI::ParseError& error) {
    throw UsageError(error.what());
  }
  return "";
}

}  // namespace kolo::train
