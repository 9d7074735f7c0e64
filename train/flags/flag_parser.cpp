#include "train/flags/flag_parser.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "train/flags/flag_values.h"
#include "train/options.h"
#include "transports/base/suggestion.h"

namespace kolo::train {
namespace {

constexpr const char* kCannotBeRead = "it cannot be read";
// For CLI11's reader of files: no value is a list, so commas and spaces belong to it.
constexpr char kNoDelimiter = '\x1f';

// "; did you mean --model?", or nothing if no flag is similar.
std::string guess(const CLI::App& app, const std::string& word) {
  std::vector<std::string> known;
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue;  // not shown
    for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
  }
  return did_you_mean(nearest_word(word.substr(0, word.find('=')), known));
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

// Flags of which a command takes only one.
constexpr std::array<std::array<std::string_view, 2>, 4> kAlternatives{
    {{"--report", "--no-report"},
     {"--load", "--resume"},
     {"--batch-size", "--global-batch"},
     {"--progress-thread", "--no-progress-thread"}}};

// Whether the command line (`given`) has the alternative to this flag of a file.
bool is_replaced(const std::string& flag, const std::vector<std::string>& given) {
  return std::ranges::any_of(kAlternatives, [&](const auto& pair) {
    const auto own = std::ranges::find(pair, flag);
    if (own == pair.end()) return false;
    const std::string_view other = own == pair.begin() ? pair[1] : pair[0];
    return std::ranges::find(given, other, flag_name) != given.end();
  });
}

void require_known(const CLI::App& app, const CLI::ConfigItem& item, const std::string& file,
                   OtherKeys others) {
  if (!item.parents.empty())
    refuse_config(file, fmt::format("unknown key '[{}]'", item.parents.front()));
  if (item.name.find_first_of(" :") != std::string::npos)
    refuse_config(file,
                  fmt::format("'{}' is no flag; expected lines as batch-size = 32", item.name));
  const CLI::Option* const option = app.get_option_no_throw("--" + item.name);
  const bool is_hidden = option != nullptr && option->get_group().empty();
  const bool is_other = option == nullptr && others == OtherKeys::allowed;
  if (is_other || (option != nullptr && !is_hidden && item.name != "help" && item.name != "config"))
    return;
  refuse_config(file, fmt::format("unknown key '{}'{}", item.name, guess(app, "--" + item.name)));
}

// The flags of a file, as words, but those that `given` replaces.
std::vector<std::string> words_of_config(const CLI::App& app, const std::string& file,
                                         const std::vector<std::string>& given, OtherKeys others) {
  std::error_code ignored;
  if (file.empty() || std::filesystem::is_directory(file, ignored))
    refuse_config(file, kCannotBeRead);
  CLI::ConfigBase format;
  format.arrayDelimiter(kNoDelimiter);
  std::vector<std::string> words;
  try {
    for (const CLI::ConfigItem& item : format.from_file(file)) {
      require_known(app, item, file, others);
      const std::string flag = "--" + item.name;
      if (is_replaced(flag_name(flag), given)) continue;
      for (const std::string& value : item.inputs) {
        words.push_back(value.empty() ? flag : fmt::format("{}={}", flag, value));
        if (value.empty()) words.emplace_back();  // CLI11 takes the next word for "--flag="
      }
    }
  } catch (const CLI::FileError&) {
    refuse_config(file, kCannotBeRead);
  }
  return words;
}

}  // namespace

std::string flag_name(const std::string& word) {
  std::string name = word.substr(0, word.find('='));
  std::ranges::replace(name, '_', '-');
  return name;
}

void add_config_flag(CLI::App& app) {
  app.add_option_function<std::string>(
         "--config", [](const std::string&) {},
         "file with flags, a line each, as batch-size = 32; those given here win [none]")
      ->check(nonempty_text("a file"));
}

std::vector<std::string> with_config_flags(const CLI::App& app,
                                           const std::vector<std::string>& arguments,
                                           OtherKeys others) {
  constexpr std::string_view kFlag = "--config", kWithValue = "--config=";
  std::vector<std::string> files, given;
  for (std::size_t i = 1; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    if (word == kFlag && i + 1 < arguments.size() && !arguments[i + 1].starts_with("--")) {
      files.push_back(arguments[++i]);
    } else if (word.starts_with(kWithValue)) {
      files.push_back(word.substr(kWithValue.size()));
    } else {
      given.push_back(word);
    }
  }
  std::vector<std::string> words{arguments.front()};
  for (const std::string& file : files) {
    const std::vector<std::string> flags = words_of_config(app, file, given, others);
    words.insert(words.end(), flags.begin(), flags.end());
  }
  words.insert(words.end(), given.begin(), given.end());
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
