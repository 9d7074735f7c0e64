// kolo-train: trains a model data-parallel with one strategy, or compares several. Or measures
// their exchange of gradients alone, runs an experiment of several points, uses a saved model, or
// downloads data.
//
// Exit codes: 0 success; 1 a failure during the run, also of plots, or the exit code of the rank
// that failed first, 3 if its memory ran out; 2 a wrong flag, variable or data set, and nothing
// was started.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#include "train/crossover/run.h"
#include "train/data/dataset.h"
#include "train/experiment/arm_runner.h"
#include "train/experiment/rank_process.h"
#include "train/experiments/options.h"
#include "train/experiments/run.h"
#include "train/fetch/fetch.h"
#include "train/inference/run.h"
#include "train/options.h"
#include "train/report/epoch_files.h"
#include "train/report/html.h"
#include "train/report/publish.h"
#include "transports/launch/launch.h"
#include "transports/launch/report_once.h"

namespace {

using namespace kolo::train;

// True for the exit code of a run that a signal asked to end.
bool is_interrupted(int exit_code) {
  constexpr int kRequests[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
  return std::ranges::any_of(kRequests, [&](int signal) { return exit_code == 128 + signal; });
}

// If an arm fails, publishes the results of the finished arms and the epochs of the others. After
// an interrupt their report has a folder beside the asked one, and an older report stays.
void publish_what_there_is(Options options, const std::vector<std::string>& arguments,
                           const ExperimentResult& outcome) {
  remove_epoch_log(options.report);
  if (outcome.runs.empty() && outcome.unfinished.empty()) return;
  if (is_interrupted(outcome.exit_code) && !options.report.empty())
    options.report = interrupted_report_folder(options.report);
  publish(options, arguments, outcome);
}

void require_output(bool is_open, const std::string& report) {
  if (is_open || !report.empty()) return;
  throw std::runtime_error(
      "standard output is closed, so the results would be lost; redirect it to a file, or "
      "/dev/null");
}

int print(const std::string& text) {
  if (std::fputs(text.c_str(), stdout) < 0 || std::fflush(stdout) != 0)
    throw std::runtime_error(std::string("cannot write to standard output: ") +
                             std::strerror(errno));
  return 0;
}

int run(const std::vector<std::string>& arguments, bool is_output_open) {
  if (!arguments.empty() && arguments[0] == "crossover") {
    const CrossoverOptions options = parse_crossover(arguments);
    require_output(is_output_open, options.report);
    return options.help.empty() ? run_crossover(options, arguments) : print(options.help);
  }
  if (!arguments.empty() && arguments[0] == "fetch") return run_fetch(arguments);
  if (!arguments.empty() && (arguments[0] == "evaluate" || arguments[0] == "predict")) {
    const InferenceOptions options = parse_inference(arguments);
    return print(options.help.empty() ? run_inference(options) : options.help);
  }
  if (!arguments.empty() && arguments[0] == "report") {
    const HtmlOptions options = parse_html(arguments);
    if (!options.help.empty()) return print(options.help);
    write_html(options);
  }
  if (const Experiment* const one = arguments.empty() ? nullptr : experiment_of(arguments[0])) {
    const ExperimentOptions options = parse_experiment(*one, arguments);
    require_output(is_output_open, options.report);
    return options.help.empty() ? run_experiment(*one, options, arguments) : print(options.help);
  }
  const ParsedOptions parsed = parse_options(arguments);
  const Options& options = parsed.options;
  require_output(is_output_open, options.report);
  if (parsed.is_text) return print(parsed.text);
  check_transport(options);
  if (is_launched()) {
    if (options.command == Command::compare) {
      throw UsageError("compare starts its ranks itself; run it without a launcher, or run train");
    }
    return run_as_rank(options, parsed.arguments);
  }
  check_data(options);
  check_report_folder(options.report);
  const ExperimentResult outcome = run_arms(options, parsed.arguments);
  publish_what_there_is(options, parsed.arguments, outcome);
  return outcome.exit_code;
}

}  // namespace

int main(int count, char** words) {
  const bool is_output_open = fcntl(STDOUT_FILENO, F_GETFD) >= 0;
  kolo::open_standard_descriptors();
  std::signal(SIGPIPE, SIG_IGN);  // report a closed reader of the table or events as an error
  std::signal(SIGXFSZ, SIG_IGN);  // report a file longer than ulimit -f as an error
  try {
    return run(std::vector<std::string>(words + 1, words + count), is_output_open);
  } catch (const std::invalid_argument& error) {  // UsageError among them
    return kolo::launch::refuse_once(std::string("kolo-train: ") + error.what(), 2);
  } catch (const DataError& error) {
    return kolo::launch::refuse_once(std::string("kolo-train: ") + error.what(), 2);
  } catch (const std::system_error& error) {  // most likely, a thread could not be created
    std::fprintf(stderr, "kolo-train: a system limit is reached: %s; see ulimit -a\n",
                 error.what());
    return 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "kolo-train: %s\n", error.what());
    return 1;
  }
}
