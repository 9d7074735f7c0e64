#include "train/crossover/crossover_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "train/report/machine_info.h"
#include "train/report/publish.h"

namespace kolo::train {
namespace {

struct Row {
  std::string arm, servers, predicted, measured, error;
};

std::vector<Row> rows_of(const std::vector<CrossoverPoint>& points) {
  std::vector<Row> rows;
  for (const CrossoverPoint& point : points) {
    Row row{point.arm, point.servers > 0 ? std::to_string(point.servers) : "-",
            fmt::format("{:.1f}", 1e3 * point.predicted), "-", "-"};
    if (point.measured) {
      row.measured = fmt::format("{:.1f}", 1e3 * *point.measured);
      row.error = fmt::format("{:+.1f}", 100 * (point.predicted / *point.measured - 1));
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

std::string from_on(const std::optional<int>& first) {
  return first ? fmt::format("from {} on", *first) : "for no number of them";
}

double measured_of(const std::vector<CrossoverPoint>& points, std::string_view arm) {
  const auto point = std::ranges::find(points, arm, &CrossoverPoint::arm);
  return point == points.end() ? 0 : point->measured.value_or(0);
}

constexpr const char* kMeaning =
    "Each time is that of one exchange of all gradients, without training: measured on the slowest "
    "rank, the median of 3 after one that does not count. The prediction is the bytes of the "
    "busiest wire at its rate, and the latency of each hop: 2 (n - 1) hops of a ring, 2 of the "
    "others. The error is that of the prediction, relative to the measurement. In `split` workers "
    "serve a part of the gradients beside the dedicated servers.";

std::string markdown_of(const CrossoverOptions& options, const std::string& command,
                        const CrossoverResult& result, const std::string& no_plots) {
  std::string text = fmt::format("# Ring or servers: {} workers, {} bytes, {}\n\n", options.ranks,
                                 options.bytes, options.shape);
  for (const std::string& sentence : crossover_findings(options.ranks, result.points))
    text += fmt::format("- {}\n", sentence);
  text +=
      "\n| arm | dedicated servers | predicted, ms | measured, ms | error, % |\n"
      "|---|---:|---:|---:|---:|\n";
  for (const Row& row : rows_of(result.points))
    text += fmt::format("| {} | {} | {} | {} | {} |\n", row.arm, row.servers, row.predicted,
                        row.measured, row.error);
  text += no_plots.empty() ? "\n![Time of an exchange](crossover.png)\n"
                           : fmt::format("\n*{}*\n", no_plots);
  text += fmt::format("\n{}\n\n    {}\n\n| made with | |\n|---|---|\n", kMeaning, command);
  for (const auto& [name, value] : machine_info())
    text += fmt::format("| {} | {} |\n", name, value);
  return text;
}

std::string json_of(const CrossoverOptions& options, const std::string& command,
                    const CrossoverResult& result) {
  nlohmann::json json;
  json["format"] = "kolo-crossover-1";
  json["command"] = command;
  json["machine"] = machine_info();
  json["ranks"] = options.ranks;
  json["bytes"] = options.bytes;
  json["shape"] = options.shape;
  json["transport"] = result.transport;
  json["findings"] = crossover_findings(options.ranks, result.points);
  json["points"] = nlohmann::json::array();
  for (const CrossoverPoint& point : result.points) {
    nlohmann::json one{
        {"arm", point.arm}, {"servers", point.servers}, {"predicted_seconds", point.predicted}};
    if (point.measured) one["measured_seconds"] = *point.measured;
    json["points"].push_back(std::move(one));
  }
  return json.dump(1) + "\n";
}

}  // namespace

std::vector<std::string> crossover_findings(int ranks, const std::vector<CrossoverPoint>& points) {
  const double n = ranks;
  std::vector<std::string> findings{
      fmt::format(
          "By the bytes, k dedicated servers beat a ring if k > n^2 / (2 (n - 1)), which is "
          "{:.2f} for n = {}.",
          n * n / (2 * (n - 1)), ranks),
      fmt::format(
          "Dedicated servers beat the ring {} by the prediction, and {} by the measurement.",
          from_on(first_better_servers(points, TimeBy::prediction)),
          from_on(first_better_servers(points, TimeBy::measurement)))};
  const double ring = measured_of(points, "ring");
  if (ring > 0) {
    findings.push_back(
        fmt::format("A server in every worker took {:.2f} times the time of the ring.",
                    measured_of(points, "everywhere") / ring));
  }
  return findings;
}

std::string crossover_table(const std::vector<CrossoverPoint>& points) {
  constexpr const char* kLine = "{:<10}  {:>7}  {:>13}  {:>12}  {:>8}\n";
  std::string text =
      fmt::format(kLine, "arm", "servers", "predicted, ms", "measured, ms", "error, %");
  for (const Row& row : rows_of(points))
    text += fmt::format(kLine, row.arm, row.servers, row.predicted, row.measured, row.error);
  return text;
}

void publish_crossover(const CrossoverOptions& options, const std::vector<std::string>& arguments,
                       const CrossoverResult& result) {
  const std::string command = fmt::format("kolo-train {}", fmt::join(arguments, " "));
  std::string table = crossover_table(result.points) + "\n";
  for (const std::string& sentence : crossover_findings(options.ranks, result.points))
    table += sentence + "\n";
  publish(options.report,
          {table, json_of(options, command, result), [&](const std::string& no_plots) {
             return markdown_of(options, command, result, no_plots);
           }});
}

}  // namespace kolo::train
