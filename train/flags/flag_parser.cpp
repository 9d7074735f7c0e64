#include "train/flags/flag_parser.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "train/options.h"
#include "transports/base/suggestion.h"

namespace kolo::train {
namespace {

constexpr const char* kCannotBeRead = "it cannot be read";

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

[[noreturn]] void refuse_config(const std::string& file, const std::string& why) {
  throw UsageError(fmt::format("--config {}: {}", file, why));
}

// The flags of a file, as words.
std::vector<std::string> words_of_config(const std::string& file) {
  std::error_code ignored;
  if (file.empty() || std::filesystem::is_directory(file, ignored))
    refuse_config(file, kCannotBeRead);
  CLI::ConfigBase format;
  format.arrayDelimiter(kNoDelimiter);
  std::vector<std::string> words;
  try {
    for (const CLI::ConfigItem& item : format.from_file(file)) {
      if (!item.parents.empty())
        refuse_config(file, fmt::format("unknown key '[{}]'", item.parents.front()));
      for (const std::string& value : item.inputs)
        words.push_back(fmt::format("--{}={}", item.name, value));
    }
  } catch (const CLI::FileError&) {
    refuse_config(file, kCannotBeRead);
  }
  return words;
}

}  // namespace

std::vector<std::string> with_config_flags(const std::vector<std::string>& arguments) {
  constexpr std::string_view kFlag = "--config", kWithValue = "--config=";
  std::vector<std::string> words{arguments.front()}, others;
  for (std::size_t i = 1; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    const bool is_alone = word == kFlag && i + 1 < arguments.size();
    if (!is_alone && !word.starts_with(kWithValue)) {
      others.push_back(word);
      continue;
    }
    const std::string file = is_alone ? arguments[++i] : word.substr(kWithValue.size());
    const std::vector<std::string> flags = words_of_config(file);
    words.insert(words.end(), flags.begin(), flags.end());
  }
  words.insert(words.end(), others.begin(), others.end());
  return words;
}

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
    throw UsageError(fmt::format("{}: {}", name_of_config(app), kCannotBeRead));
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
