// kolo-bench table: time and bandwidth of all-reduce by size and number of processes, as in the
// guides of gloo and NCCL: a table, JSON lines and two bar charts.
//
// A point of the table is one job `kolo-bench allreduce`: kolo over one transport, in turn with the
// peers. Finished points are stored (table_points.h), so a second start measures only the others.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace kolo::bench {

struct TableRequest {
  std::vector<int> ranks;
  std::vector<std::size_t> sizes;  // whole elements
  std::vector<std::string> transports;
  std::vector<std::string> against;  // peers
  int iterations = 0;                // per point and library; 0: by size (turns_of)
  double timeout_s = 60;
  std::string out;  // the folder
};

struct TableKey {
  std::string transport;
  int ranks = 0;
  std::size_t bytes = 0;

  bool operator==(const TableKey&) const = default;
};

// The points in the order of the table: by transport, ranks, size.
std::vector<TableKey> keys_of(const TableRequest& request);

// "4 ranks over shm, 10 MB"
std::string to_string(const TableKey& key);

// Iterations of a point, and the number of passes that share them. Large sizes have fewer, so that
// the table takes minutes. `asked`: as --iterations; 0: by size.
struct Turns {
  int iterations = 0;
  int passes = 0;
};
Turns turns_of(std::size_t bytes, int asked);

// The command line that measures a point.
std::vector<std::string> point_command(const TableRequest& request, const TableKey& key);

// Why the point does not fit into `available` bytes of memory; empty if it fits. It needs the
// buffer of each rank twice: the second time for the measurement of the machine's limit, and for
// buffers inside the libraries.
std::string why_no_memory(const TableKey& key, std::size_t available);

// Returns an exit code: 0, 3 for wrong results, or that of the job that failed. Finished points are
// reported in any case. Throws std::invalid_argument, before anything is measured, if the points in
// the folder cannot be compared with new ones (TablePoints).
int run_table(const TableRequest& request);

}  // namespace kolo::bench
