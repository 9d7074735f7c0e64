// kolo-bench: main program of the benchmarks.
#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <exception>
#include <iostream>
#include <stdexcept>

#include "bench/cli/allocated_bytes.h"
#include "bench/cli/arguments.h"
#include "bench/cli/ranks.h"
#include "bench/commands/diff.h"
#include "bench/commands/table.h"
#include "bench/commands/tune.h"
#include "bench/interpreter/interpreter.h"
#include "bench/limits/limits.h"
#include "bench/output/plot_script.h"
#include "bench/output/report.h"
#include "bench/peers/peers.h"
#include "transports/launch/launch.h"
#include "transports/registry.h"

namespace {

using kolo::bench::Arguments;

constexpr int kBadArguments = 2;

int plot(const Arguments& arguments) {
  std::vector<std::string> words = {"--out", arguments.plot_folder};
  if (!arguments.plot_format.empty()) words.push_back("--format=" + arguments.plot_format);
  if (arguments.is_overview) words.emplace_back("--overview");
  if (arguments.is_table_plot) words.emplace_back("--table");
  words.insert(words.end(), arguments.plot_files.begin(), arguments.plot_files.end());
  const std::string why = kolo::bench::become_plot(words);
  std::cerr << "kolo-bench: " << why << '\n';
  return 1;
}

// A closed standard output is replaced by /dev/null, and the output would be lost silently.
void require_standard_output(bool is_open) {
  if (is_open) return;
  throw std::runtime_error(
      "standard output is closed, and the output would be lost; redirect it to a file, or "
      "/dev/null");
}

// Whether the results are also written to a file.
bool leaves_a_file(const Arguments& arguments) {
  if (!arguments.json.empty()) return arguments.json != "-";
  return arguments.command == "plot" || arguments.command == "draw" ||
         arguments.command == "table" || arguments.command == "timeline" ||
         arguments.command == "tune";
}

int list_peers() {
  for (const std::string& name : kolo::bench::peer_variants())
    std::cout << name << (kolo::bench::needs_device(name) ? " (with --device cuda)" : "") << '\n';
  kolo::bench::flush_or_throw(std::cout, "standard output");
  return 0;
}

int list_transports() {
  for (const kolo::TransportFact& fact : kolo::transport_facts()) {
    std::string line = fact.name + ": joins " + fact.reach;
    if (!fact.why_unusable.empty()) line += "; cannot be used here: " + fact.why_unusable;
    for (std::size_t i = 0; i < fact.ways.size(); ++i)
      line += (i == 0 ? "; over " : ", ") + fact.ways[i];
    std::cout << line << '\n';
  }
  kolo::bench::flush_or_throw(std::cout, "standard output");
  return 0;
}

int run(const Arguments& arguments, int argc, const char* const* argv) {
  if (kolo::bench::launched_ranks() == 0) kolo::bench::warn_about_existing_rows(arguments.json);
  if (arguments.command == "limits") return kolo::bench::run_limits(arguments);
  if (arguments.command == "plot") return plot(arguments);
  if (arguments.command == "peers") return list_peers();
  if (arguments.command == "transports") return list_transports();
  if (arguments.command == "diff") return kolo::bench::run_diff(arguments);
  if (arguments.command == "timeline") return kolo::bench::run_timeline(arguments.timeline);
  if (arguments.command == "table") return kolo::bench::run_table(arguments.table);
  if (arguments.command == "draw") return kolo::bench::run_draw(arguments.draw);
  if (arguments.command == "interpreter") {
    return kolo::bench::run_interpreter(
        {arguments.ranks, arguments.is_quick, kolo::bench::allocated_bytes});
  }
  if (arguments.command == "tune" && arguments.tune.points.empty())
    return kolo::bench::run_tune(arguments, argc, argv);
  return kolo::bench::run_collective(arguments, argc, argv);
}

int parse_and_run(int argc, const char* const* argv, bool is_output_open) {
  Arguments arguments;
  bool is_all_said = false;
  try {
    is_all_said =
        !kolo::bench::parse_arguments(argc, argv, arguments, kolo::bench::launched_ranks());
  } catch (const std::invalid_argument& error) {
    kolo::bench::report_refusal(error.what());
    return kBadArguments;
  }
  require_standard_output(is_output_open || (!is_all_said && leaves_a_file(arguments)));
  if (!is_all_said) return run(arguments, argc, argv);
  kolo::bench::flush_or_throw(std::cout, "standard output");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const bool is_output_open = fcntl(STDOUT_FILENO, F_GETFD) >= 0;
  kolo::open_standard_descriptors();
  std::signal(SIGPIPE, SIG_IGN);  // a closed pipe is then an error of write()
  std::signal(SIGXFSZ, SIG_IGN);  // exceeding ulimit -f is then an error of write() or ftruncate()
  try {
    return parse_and_run(argc, argv, is_output_open);
  } catch (const std::invalid_argument& error) {
    std::cerr << "kolo-bench: " << error.what() << '\n';
    return kBadArguments;
  } catch (const std::system_error& error) {  // a thread, most likely
    std::cerr << "kolo-bench: not enough system resources: " << error.what() << "; see ulimit -a\n";
    return 1;
  } catch (const std::exception& error) {
    std::cerr << "kolo-bench: " << error.what() << '\n';
    return 1;
  }
}
