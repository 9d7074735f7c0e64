// kolo-device-bench: bandwidth of a device's reduction kernels, compared with its copies
// (kernel_bandwidth.h). Prints a table, and JSON lines for programs; bench/README.md explains the
// columns.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/cli/sizes.h"
#include "bench/device/kernel_bandwidth.h"
#include "bench/output/report.h"
#include "bench/output/run_info.h"
#include "collectives/reduce/device/device.h"

namespace kolo::bench {
namespace {

constexpr int kFailed = 1;
constexpr int kBadArguments = 2;
constexpr int kWrong = 3;

struct DeviceArguments {
  std::vector<std::string> types = {"float32", "bfloat16", "float8_e4m3", "float8_e5m2"};
  std::vector<std::string> bytes = {"64M", "256M", "1G"};
  std::vector<std::string> forms = {"in_place", "twice"};
  int iterations = 21;
  std::string json;
};

ElementType parse_type(const std::string& name) {
  for (const ElementType type : kElementTypes) {
    if (kolo::to_string(type) == name) return type;
  }
  throw std::invalid_argument("--type: '" + name + "' is no element type; there are float32, ...");
}

KernelForm parse_form(const std::string& name) {
  for (const KernelForm form : kKernelForms) {
    if (to_string(form) == name) return form;
  }
  throw std::invalid_argument("--form: '" + name + "' is none of in_place, apart and twice");
}

std::string json_line(const KernelRequest& contest, const KernelResult& result) {
  nlohmann::ordered_json line;
  line["library"] = "kolo";
  line["transport"] = "device";
  line["collective"] = "reduce_kernel";
  line["algorithm"] = to_string(contest.form);
  line["ranks"] = 1;
  line["bytes"] = contest.bytes;
  line["iterations"] = contest.iterations;
  line["median_us"] = result.kernel_us.median;
  line["p10_us"] = result.kernel_us.p10;
  line["p90_us"] = result.kernel_us.p90;
  line["algbw_GBps"] = gigabytes_per_second(contest.bytes, result.kernel_us.median);
  line["busbw_GBps"] = result.kernel_gigabytes_per_second();
  line["wrong"] = result.wrong;
  line["type"] = kolo::to_string(contest.type);
  line["op"] = "sum";
  line["copy_us"] = result.copy_us.median;
  line["copy_GBps"] = result.copy_gigabytes_per_second();
  line["of_copy"] = result.kernel_gigabytes_per_second() / result.copy_gigabytes_per_second();
  line["device"] = device::description();
  line["run"] = run_info();
  return line.dump();
}

std::string table_line(const KernelRequest& contest, const KernelResult& result) {
  return fmt::format(
      "{:>12} {:>11} {:>9} {:>10.1f} {:>10.1f} {:>10.1f} {:>9.1f} {:>9.1f} {:>8.3f} {:>6}",
      format_bytes(contest.bytes), kolo::to_string(contest.type), to_string(contest.form),
      result.kernel_us.median, result.kernel_us.p10, result.kernel_us.p90,
      result.kernel_gigabytes_per_second(), result.copy_gigabytes_per_second(),
      result.kernel_gigabytes_per_second() / result.copy_gigabytes_per_second(), result.wrong);
}

// Measures every size, type and form, in that order; returns the number of wrong elements.
std::uint64_t measure(const std::vector<KernelRequest>& contests, const std::string& json) {
  warn_about_existing_rows(json);
  JsonLines lines(json);
  std::ostream& table = json == "-" ? std::cerr : std::cout;
  table << "# " << own_version() << "; " << device::description() << '\n'
        << fmt::format("#{:>11} {:>11} {:>9} {:>10} {:>10} {:>10} {:>9} {:>9} {:>8} {:>6}\n",
                       "bytes", "type", "form", "time us", "p10", "p90", "GB/s", "copy", "of copy",
                       "wrong");
  std::uint64_t wrong = 0;
  for (const KernelRequest& contest : contests) {
    const KernelResult result = measure_kernel(contest);
    table << table_line(contest, result) << std::endl;
    lines.add(json_line(contest, result));
    wrong += result.wrong;
  }
  flush_or_throw(table, "the table");
  return wrong;
}

std::vector<KernelRequest> contests_of(const DeviceArguments& arguments) {
  std::vector<KernelRequest> contests;
  for (const std::string& bytes : arguments.bytes) {
    for (const std::string& type : arguments.types) {
      for (const std::string& form : arguments.forms) {
        KernelRequest contest{parse_type(type), parse_form(form), parse_bytes(bytes),
                              arguments.iterations};
        contest.bytes -= contest.bytes % element_bytes(contest.type);
        if (contest.bytes == 0) throw std::invalid_argument("--bytes: no element in " + bytes);
        contests.push_back(contest);
      }
    }
  }
  return contests;
}

int run(const DeviceArguments& arguments) {
  const std::vector<KernelRequest> contests = contests_of(arguments);
  if (!device::why_unusable().empty()) {
    std::cerr << "kolo-device-bench: no device to measure: " << device::why_unusable() << '\n';
    return kFailed;
  }
  return measure(contests, arguments.json) == 0 ? 0 : kWrong;
}

}  // namespace
}  // namespace kolo::bench

int main(int argc, char** argv) {
  kolo::bench::DeviceArguments arguments;
  CLI::App app("A device's reduction kernels against its copy bandwidth");
  app.add_option("--type", arguments.types, "Element types, a list")->delimiter(',');
  app.add_option("--bytes", arguments.bytes, "Size of an operand, a list: 64M,1G")->delimiter(',');
  app.add_option("--form", arguments.forms, "in_place, apart, twice (a list)")->delimiter(',');
  app.add_option("--iterations", arguments.iterations, "Counted iterations")
      ->check(CLI::Range(1, 100000));
  app.add_option("--json", arguments.json, "A file for JSON lines, or -");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kolo::bench::kBadArguments;
  }
  try {
    return kolo::bench::run(arguments);
  } catch (const std::invalid_argument& error) {
    std::cerr << "kolo-device-bench: " << error.what() << '\n';
    return kolo::bench::kBadArguments;
  } catch (const std::exception& error) {
    std::cerr << "kolo-device-bench: " << error.what() << '\n';
    return kolo::bench::kFailed;
  }
}
