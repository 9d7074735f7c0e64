// kolo-train: trains a model data-parallel, with one strategy or with several to be compared.
//
// Exit codes: 0 done; 1 a failure on the way, or that of the rank that failed first; 2 a flag that
// is wrong.
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "train/conductor.h"
#include "train/data/dataset.h"
#include "train/options.h"
#include "train/publish.h"
#include "train/rank.h"
#include "transports/rendezvous.h"

namespace {

using namespace kolo::train;

int run(const std::vector<std::string>& arguments) {
  const ParsedOptions parsed = parse_options(arguments);
  const Options& options = parsed.options;
  if (parsed.is_text) {
    std::fputs(parsed.text.c_str(), stdout);
    return 0;
  }
  if (is_launched()) {
    if (options.command == Command::compare) {
      throw UsageError("compare starts its ranks itself; run it without a launcher, or run train");
    }
    run_as_rank(options, arguments);
    return 0;
  }
  if (!options.report.empty()) require_writable(options.report);
  check_data(options);
  Performance performance = conduct(options, arguments);
  if (performance.exit_code != 0) {
    std::fprintf(stderr, "kolo-train: %s\n", performance.message.c_str());
    return performance.exit_code;
  }
  publish(options, arguments, std::move(performance.runs));
  return 0;
}

}  // namespace

int main(int count, char** words) {
  try {
    return run(std::vector<std::string>(words + 1, words + count));
  } catch (const UsageError& error) {
    std::fprintf(stderr, "kolo-train: %s\n", error.what());
    return 2;
  } catch (const DataError& error) {
    std::fprintf(stderr, "kolo-train: %s\n", error.what());
    return 2;
  } catch (const ReportError& error) {
    std::fprintf(stderr, "kolo-train: %s\n", error.what());
    return 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "kolo-train: %s\n", error.what());
    return 1;
  }
}
