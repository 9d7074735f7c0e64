#include "transports/conformance/arguments.h"

#include <algorithm>
#include <charconv>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string_view>

#include "transports/conformance/clauses.h"
#include "transports/registry.h"

namespace kolo::inline v0::conformance {

namespace {

constexpr std::size_t kRankWords = 4;

[[noreturn]] void refuse(const std::string& message) { throw std::invalid_argument(message); }

void add_all(Arguments& arguments) {
  for (const std::string_view name : transport_names()) {
    if (const std::string why = why_unusable(name); why.empty()) {
      arguments.transports.emplace_back(name);
    } else {
      arguments.left_out.push_back(std::string(name) + " cannot be used here: " + why);
    }
  }
}

void add_transports(const std::string& list, Arguments& arguments) {
  std::istringstream words(list);
  for (std::string word; std::getline(words, word, ',');) {
    if (word == "all") {
      add_all(arguments);
    } else {
      arguments.transports.push_back(word);
    }
  }
}

// Adds the clauses whose text or group matches `part`.
void add_clauses(const std::string& option, const std::string& part,
                 std::vector<std::string>& texts) {
  const std::size_t before = texts.size();
  for (const Clause& clause : clauses()) {
    if (clause.text == part) return texts.push_back(part);
  }
  for (const Clause& clause : clauses()) {
    if (clause.text.find(part) != std::string_view::npos || clause.group == part)
      texts.emplace_back(clause.text);
  }
  if (texts.size() == before)
    refuse(option + " " + part + ": no clause has these words; --list shows the clauses");
}

// Removes `left_out` from the requested clauses.
void leave_out(const std::vector<std::string>& left_out, std::vector<std::string>& asked) {
  if (asked.empty()) {
    for (const Clause& clause : clauses()) asked.emplace_back(clause.text);
  }
  std::erase_if(asked, [&left_out](const std::string& text) {
    return std::ranges::find(left_out, text) != left_out.end();
  });
  if (asked.empty()) refuse("--but: no clause is left");
}

std::chrono::seconds read_limit(const std::string& text) {
  int seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (error != std::errc() || end != text.data() + text.size() || seconds < 1)
    refuse("--limit " + text + ": expected a number of seconds, 1 or more");
  return std::chrono::seconds(seconds);
}

}  // namespace

std::string usage() {
  return "Proves that a transport keeps the contract of transports/transport.h, clause by clause.\n"
         "\n"
         "  kolo-conformance --transport NAME|PATH[,...]\n"
         "\n"
         "  --transport, -t  a transport of this build, a library (with a slash: ./libx.so), or "
         "all\n"
         "  --clause WORDS   runs the clauses, or the group, with these words [all]\n"
         "  --but WORDS      skips the clauses with these words\n"
         "  --limit SECONDS  time limit of one clause [120]\n"
         "  --here           runs in this process, for a debugger\n"
         "  --markdown FILE  writes the table into FILE, between its marks; other columns stay\n"
         "  --list           shows the clauses\n"
         "\n"
         "Exit code: 0 if no clause failed, 1 if one failed, 2 for a wrong command "
         "line.\n";
}

Arguments parse(int argc, const char* const* argv) {
  Arguments result;
  std::vector<std::string> left_out;
  const std::span words(argv + 1, static_cast<std::size_t>(std::max(argc - 1, 0)));
  for (std::size_t i = 0; i < words.size(); ++i) {
    std::string word = words[i];
    std::string value;
    bool has_value = false;
    if (const auto equals = word.find('='); word.starts_with("--") && equals != std::string::npos) {
      value = word.substr(equals + 1);
      word.resize(equals);
      has_value = true;
    }
    const auto take = [&] {
      if (has_value) return value;
      if (++i == words.size()) refuse(word + ": expected a value");
      return std::string(words[i]);
    };
    if (word == "--transport" || word == "-t") {
      add_transports(take(), result);
    } else if (word == "--clause") {
      add_clauses(word, take(), result.clauses);
    } else if (word == "--but") {
      add_clauses(word, take(), left_out);
    } else if (word == "--limit") {
      result.limit = read_limit(take());
    } else if (word == "--markdown") {
      result.markdown = take();
    } else if (word == "--list") {
      result.is_list = true;
    } else if (word == "--help" || word == "-h") {
      result.is_help = true;
    } else if (word == "--here") {
      result.is_here = true;
    } else if (word == "--probe") {
      result.is_probe = true;
    } else if (word == "--rank" && words.size() - i == kRankWords + 1) {
      result.rank.assign(words.begin() + static_cast<std::ptrdiff_t>(i) + 1, words.end());
      return result;
    } else {
      refuse(word + ": no such option; --help lists them");
    }
  }
  if (!left_out.empty()) leave_out(left_out, result.clauses);
  const bool needs_transport = !result.is_list && !result.is_help;
  if (needs_transport && result.transports.empty())
    refuse("--transport: expected a name or a path; --help says more");
  if (!result.markdown.empty() && !result.clauses.empty())
    refuse("--markdown: the table has all clauses; leave out --clause and --but");
  return result;
}

}  // namespace kolo::inline v0::conformance
