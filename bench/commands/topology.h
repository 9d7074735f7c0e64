// kolo-bench topology: the transport, address, latency and bandwidth of every pair of ranks.
//
// The pairs are measured one after the other, each by messages of its two ranks; the others sleep
// in a barrier. A pair takes some milliseconds, and a few messages on a slow network. The ranks may
// be on several hosts.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "bench/cli/arguments.h"
#include "bench/output/report.h"
#include "collectives/communicator.h"

namespace kolo::bench {

struct PairRow {
  int ranks[2] = {0, 0};
  int hosts[2] = {0, 0};
  double latency_us = 0;      // half the round trip of 8 bytes, median
  double bandwidth_GBps = 0;  // one direction, from the lower rank to the higher one
  std::string transport;
  std::string address;  // of the higher rank; empty: none
};

std::string json_line(const PairRow& row, int size);

// The row with the lowest bandwidth; among equals, with the longest latency. Null without rows.
const PairRow* slowest(const std::vector<PairRow>& rows);

// The lines of the table, without its heading.
std::vector<std::string> table_lines(const std::vector<PairRow>& rows);

// Measures all pairs; collective. Rows on rank 0 only.
std::vector<PairRow> measure_topology(Communicator& communicator);

// Runs one rank's part; rank 0 prints.
void run_topology(Communicator& communicator, const Arguments& arguments, std::ostream& table,
                  JsonLines& json);

}  // namespace kolo::bench
