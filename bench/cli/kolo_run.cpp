// kolo-run: starts the ranks of a job, on this host or on several. transports/launch/launch.h has
// the contract.
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <iostream>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

#include "transports/base/suggestion.h"
#include "transports/launch/hosts.h"
#include "transports/launch/launch.h"
#include "transports/registry.h"

namespace {

constexpr const char* kAbout =
    "Starts a command as the ranks of a job, on this host or, over ssh, on the hosts of a file.\n"
    "Output comes in whole lines behind \"[rank] \"; signals are passed on to all ranks; when one "
    "rank fails, all end, and\n"
    "kolo-run says which and how, and exits with its code (128 + the signal; 127 where there is no "
    "such command).";

const std::map<std::string, kolo::launch::Binding> kBindings{
    {"auto", kolo::launch::Binding::kAuto},
    {"none", kolo::launch::Binding::kNone},
    {"cores", kolo::launch::Binding::kCores},
    {"nodes", kolo::launch::Binding::kNodes}};

// Index of the command: after kolo-run's own options, and after "--" if given. Everything from
// there on belongs to the command, even if it looks like an option of kolo-run.
int find_command(const CLI::App& app, int argc, char** argv) {
  int i = 1;
  while (i < argc && argv[i][0] == '-') {
    const std::string word = argv[i++];
    if (word == "--") break;
    const CLI::Option* option = app.get_option_no_throw(word);
    if (option != nullptr && option->get_items_expected_max() > 0) ++i;
  }
  return std::min(i, argc);
}

CLI::Validator number_within(int low, int high) {
  return {[low, high](const std::string& text) {
            double value = 0;
            const bool is_number = CLI::detail::lexical_cast(text, value);
            if (is_number && value >= low && value <= high) return std::string();
            return "'" + text + "' is not a number from " + std::to_string(low) + " to " +
                   std::to_string(high);
          },
          ""};
}

// Validator of --bind.
CLI::Validator one_of_bindings() {
  return {[](const std::string& text) {
            if (kBindings.contains(text)) return std::string();
            std::vector<std::string> names;
            std::string list;
            for (const auto& entry : kBindings) {
              names.push_back(entry.first);
              list += (list.empty() ? "" : ", ") + entry.first;
            }
            return "there is no '" + text + "'; expected one of " + list +
                   kolo::did_you_mean(kolo::suggested_word(text, names));
          },
          ""};
}

// "; did you mean --ranks?"; empty if no option is similar.
std::string guess(const CLI::App& app, const std::string& word) {
  if (!word.starts_with("--")) return "";
  std::vector<std::string> known;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
  }
  return kolo::did_you_mean(kolo::nearest_word(word.substr(0, word.find('=')), known));
}

// Shorter messages than CLI11's for the most common mistakes.
std::string explain(const CLI::ParseError& error, const CLI::App& app) {
  const auto unknown = app.remaining();
  if (!unknown.empty())
    return "there is no option '" + unknown.front() + "'" + guess(app, unknown.front());
  const std::string text = error.what();
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr)
    return text.substr(0, text.find_first_of(": ")) + " needs a value";
  constexpr std::string_view kRanks = "--ranks:";  // users mostly write -n
  return text.starts_with(kRanks) ? "-n:" + text.substr(kRanks.size()) : text;
}

// Checks here what every rank would refuse.
void require_usable_transport(int ranks) {
  const std::string name = kolo::resolve_transport("auto");
  const std::string why = ranks > 1 ? kolo::why_unusable(name) : "";
  if (why.empty()) return;
  throw std::invalid_argument("KOLO_TRANSPORT: " + name + " cannot be used here: " + why +
                              "; unset it, or name another");
}

// The number of ranks and their hosts, from --hosts or -n; or the agent's part of the job.
void set_places(kolo::LaunchRequest& request, const std::string& hosts, const std::string& agent) {
  if (!agent.empty()) request.part = kolo::launch::parse_part(agent);
  if (!hosts.empty()) {
    request.hosts = kolo::launch::read_hosts(hosts, request.ranks);
    request.ranks = request.hosts.back().first_rank + request.hosts.back().ranks;
  }
  if (request.ranks == 0) {
    throw std::invalid_argument(
        "-n N is missing before the command: the number of ranks (or --hosts FILE)");
  }
}

int usage_error(const std::string& message) {
  std::cerr << "kolo-run: " << message << "; see kolo-run --help\n";
  return 2;
}

// Writes the help or the version; returns the exit code.
int write_out(const CLI::App& app, const CLI::Success& done) {
  errno = 0;
  const int code = app.exit(done);
  if (std::cout.flush()) return code;
  const std::string why = errno == 0 ? "" : std::string(": ") + std::strerror(errno);
  std::cerr << "kolo-run: cannot write to standard output" << why << '\n';
  return 1;
}

// Values of options that are not yet in the request.
struct Words {
  double grace_s = 5;
  bool is_plain = false;
  std::string binding = "auto";
  std::string hosts;
  std::string agent;
  std::vector<std::string> command;
};

void add_options(CLI::App& app, kolo::LaunchRequest& request, Words& words) {
  request.ranks = 0;
  app.add_option("-n,--ranks", request.ranks, "Number of ranks; with --hosts: one for each slot")
      ->type_name("N")
      ->check(number_within(1, 4096));
  app.add_option("--hosts", words.hosts,
                 "Start ranks over ssh on the hosts of this file, with lines \"HOST slots=N\"")
      ->type_name("FILE");
  app.add_option("--ssh", request.remote_shell, "The command that reaches a host")
      ->type_name("COMMAND")
      ->capture_default_str();
  app.add_option("--agent", words.agent)->group("");  // of kolo-run on other hosts: launch/hosts.h
  app.add_option("--grace", words.grace_s, "Seconds from asking a rank to end to killing it")
      ->type_name("SECONDS")
      ->capture_default_str()
      ->check(number_within(0, 3600));
  app.add_option(
         "--bind", words.binding,
         "Bind each rank to cores of its own (cores), to the NUMA nodes of its share (nodes), "
         "or not (none); auto: cores, if there are enough")
      ->type_name("HOW")
      ->capture_default_str()
      ->check(one_of_bindings());
  app.add_flag("--plain", words.is_plain,
               "Rank 0 writes without a prefix, to the terminal itself if there is one");
  // Only for the help text: parsing ends before the command.
  app.add_option("command", words.command,
                 "The command of each rank, and its arguments; -- may precede it");
}

}  // namespace

int main(int argc, char** argv) {
  kolo::open_standard_descriptors(kolo::LostOutput::kIsAnError);
  CLI::App app{kAbout, "kolo-run -n N"};
  app.set_version_flag("--version", "kolo " KOLO_VERSION, "Print the version and end");
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  kolo::LaunchRequest request;
  Words words;
  add_options(app, request, words);
  std::string number_of_ranks = "-n";  // mpirun's -np
  if (argc > 1 && std::string_view(argv[1]) == "-np") argv[1] = number_of_ranks.data();
  const int begin = find_command(app, argc, argv);
  try {
    app.parse(begin, argv);
  } catch (const CLI::Success& done) {
    return write_out(app, done);
  } catch (const CLI::ParseError& error) {
    return usage_error(explain(error, app));
  }
  request.command.assign(argv + begin, argv + argc);
  if (request.command.empty()) return usage_error("there is no command to run");
  request.grace = std::chrono::milliseconds(static_cast<int>(words.grace_s * 1000));
  request.binding = kBindings.at(words.binding);
  request.output = words.is_plain ? kolo::RankOutput::kRankZeroPlain : kolo::RankOutput::kPrefixed;
  try {
    set_places(request, words.hosts, words.agent);
    require_usable_transport(request.ranks);
    const kolo::LaunchResult result = kolo::launch_ranks(request);
    const bool is_known = request.part && result.passed_on != 0;  // to the launcher, which asked
    if (!result.message.empty() && !is_known) std::cerr << "kolo-run: " << result.message << '\n';
    return result.exit_code;
  } catch (const std::invalid_argument& error) {
    return usage_error(error.what());
  } catch (const std::exception& error) {
    std::cerr << "kolo-run: " << error.what() << '\n';
    return 1;
  }
}
