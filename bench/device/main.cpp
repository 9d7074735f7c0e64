// kolo-device-bench: bandwidth of a device's reduction kernels, compared with its copies
// (kernel_bandwidth.h). Prints a table, and JSON lines for programs; bench/README.md explains the
// columns.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
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
  std::vector<std::string> bytes = {"64M", "256M"};
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

struct KernelRequest {
  ElementType type = ElementType::kFloat32;
  KernelForm form = KernelForm::kInPlace;
  std::size_t bytes = 0;  // per operand
};

std::string json_line(const KernelRequest& request, int iterations, const KernelResult& result) {
  nlohmann::ordered_json line;
  line["library"] = "kolo";
  line["transport"] = "device";
  line["collective"] = "reduce_kernel";
  line["algorithm"] = to_string(request.form);
  line["ranks"] = 1;
  line["bytes"] = request.bytes;
  line["iterations"] = iterations;
  line["median_us"] = result.kernel_us.median;
  line["p10_us"] = result.kernel_us.p10;
  line["p90_us"] = result.kernel_us.p90;
  line["algbw_GBps"] = gigabytes_per_second(request.bytes, result.kernel_us.median);
  line["busbw_GBps"] = result.kernel_gigabytes_per_second();
  line["wrong"] = result.wrong;
  line["type"] = kolo::to_string(request.type);
  line["op"] = "sum";
  line["copy_us"] = result.copy_us.median;
  line["copy_GBps"] = result.copy_gigabytes_per_second();
  line["of_copy"] = result.kernel_gigabytes_per_second() / result.copy_gigabytes_per_second();
  line["device"] = device::description();
  line["run"] = run_info();
  return line.dump();
}

std::string table_line(const KernelRequest& request, const KernelResult& result) {
  return fmt::format(
      "{:>12} {:>11} {:>9} {:>10.1f} {:>10.1f} {:>10.1f} {:>9.1f} {:>9.1f} {:>8.3f} {:>6}",
      format_bytes(request.bytes), kolo::to_string(request.type), to_string(request.form),
      result.kernel_us.median, result.kernel_us.p10, result.kernel_us.p90,
      result.kernel_gigabytes_per_second(), result.copy_gigabytes_per_second(),
      result.kernel_gigabytes_per_second() / result.copy_gigabytes_per_second(), result.wrong);
}

// Measures every size, type and form, in that order; returns the number of wrong elements.
std::uint64_t measure(const std::vector<KernelRequest>& requests, int iterations,
                      const std::string& json) {
  warn_about_existing_rows(json);
  JsonLines lines(json);
  std::ostream& table = json == "-" ? std::cerr : std::cout;
  table << "# " << own_version() << "; " << device::description() << '\n'
        << fmt::format("#{:>11} {:>11} {:>9} {:>10} {:>10} {:>10} {:>9} {:>9} {:>8} {:>6}\n",
                       "bytes", "type", "form", "time us", "p10", "p90", "GB/s", "copy", "of copy",
                       "wrong");
  std::uint64_t wrong = 0;
  std::optional<KernelArrays> arrays;  // kept for all forms
  for (const KernelRequest& request : requests) {
    if (!arrays || arrays->type() != request.type || arrays->bytes() != request.bytes) {
      arrays.reset();  // first, so that both need not fit
      arrays.emplace(request.type, request.bytes);
    }
    const KernelResult result = arrays->measure(request.form, iterations);
    table << table_line(request, result) << std::endl;
    lines.add(json_line(request, iterations, result));
    wrong += result.wrong;
  }
  flush_or_throw(table, "the table");
  return wrong;
}

std::vector<KernelRequest> requests_of(const DeviceArguments& arguments) {
  std::vector<KernelRequest> requests;
  for (const std::string& bytes : arguments.bytes) {
    for (const std::string& type : arguments.types) {
      for (const std::string& form : arguments.forms) {
        KernelRequest request{parse_type(type), parse_form(form), parse_bytes(bytes)};
        request.bytes -= request.bytes % element_bytes(request.type);
        if (request.bytes == 0) throw std::invalid_argument("--bytes: no element in " + bytes);
        requests.push_back(request);
      }
    }
  }
  return requests;
}

int run(const DeviceArguments& arguments) {
  const std::vector<KernelRequest> requests = requests_of(arguments);
  if (!device::why_unusable().empty()) {
    std::cerr << "kolo-device-bench: no device to measure: " << device::why_unusable() << '\n';
    return kFailed;
  }
  return measure(requests, arguments.iterations, arguments.json) == 0 ? 0 : kWrong;
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
