#include "bench/cli/table_flags.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <iostream>

#include "bench/cli/sizes.h"
#include "bench/commands/table.h"
#include "bench/peers/peers.h"

namespace kolo::bench {
namespace {

constexpr const char* kUsualPeer = "gloo";
constexpr const char* kNoPeers = "none";

std::vector<std::size_t> parse_sizes(const std::string& text) {
  constexpr std::size_t kElement = sizeof(float);
  std::vector<std::size_t> sizes;
  for (const std::string& word : each_once("--sizes", text)) {
    try {
      sizes.push_back(whole(parse_decimal_bytes(word), kElement));
    } catch (const std::invalid_argument& error) {
      throw std::invalid_argument(fmt::format("--sizes: {}", error.what()));
    }
    require(sizes.back() > 0, "--sizes 0: expected more than 0 bytes");
    require(std::ranges::count(sizes, sizes.back()) == 1,
            fmt::format("--sizes {}: this becomes {} bytes, a size that is named twice", word,
                        sizes.back()));
  }
  return sizes;
}

std::vector<std::string> peers_of(const std::string& typed) {
  if (typed == kNoPeers) return {};
  if (!typed.empty()) return each_once("--against", typed);
  const auto present = peer_names();
  if (std::ranges::find(present, kUsualPeer) != present.end()) return {kUsualPeer};
  return {};
}

}  // namespace

void add_table(CLI::App& app, Arguments& result, RawOptions& typed) {
  typed.ranks = "2,4,6";
  CLI::App* command = app.add_subcommand(
      "table",
      "Measure allreduce by size and number of processes; write a table and two bar charts");
  command->option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  command->add_option("-n,--ranks", typed.ranks, "Numbers of processes to start on this host")
      ->capture_default_str();
  command
      ->add_option("--sizes", typed.table_sizes,
                   "A list, in powers of 1000 as in guides: 1M is 10^6 bytes")
      ->capture_default_str();
  command->add_option("-t,--transport", typed.transports, "A list of inproc,shm,tcp,...")
      ->capture_default_str();
  command->add_option("--against", typed.against,
                      "Peers to measure in turn with kolo: openmpi,mpich,gloo; none; default: "
                      "gloo, if this build has it");
  command
      ->add_option("-i,--iterations", result.iterations,
                   "Per point and library; 0: by size, from 100 for 1 MB to 4 for 1 GB")
      ->capture_default_str();
  command
      ->add_option("--timeout", typed.timeout_s,
                   "Seconds until a rank that others wait for counts as lost")
      ->capture_default_str();
  command->add_option("-o,--out", result.table.out,
                      "The folder for points, table and charts; finished points in it are kept");
  command->footer(kDocuments);
}

void take_table(const RawOptions& typed, int launched, Arguments& result) {
  require(launched == 0,
          "table starts its ranks itself, as many as the grid has: run it without a launcher");
  TableRequest& table = result.table;
  require(!table.out.empty(), "table: --out FOLDER is missing, the folder for the results");
  table.ranks = parse_rank_counts(typed.ranks);
  table.sizes = parse_sizes(typed.table_sizes);
  table.transports = parse_transports(typed.transports, "table");
  table.against = peers_of(typed.against);
  require(result.iterations >= 0,
          fmt::format("--iterations {}: expected 0 or more", result.iterations));
  table.iterations = result.iterations;
  table.timeout_s = typed.timeout_s;
  for (const std::string& peer : table.against) {
    require(!needs_device(peer),
            fmt::format(
                "--against {}: this library needs device memory, and table measures host memory",
                peer));
  }
  // Check the options of all points, as their jobs will, before the first job runs.
  for (const std::string& transport : table.transports) {
    const int most = *std::ranges::max_element(table.ranks);
    const std::vector<std::string> words = point_command(table, {transport, most, table.sizes[0]});
    std::vector<const char*> pointers;
    for (const std::string& word : words) pointers.push_back(word.c_str());
    Arguments job;
    parse_arguments(static_cast<int>(pointers.size()), pointers.data(), job);
  }
}

}  // namespace kolo::bench
