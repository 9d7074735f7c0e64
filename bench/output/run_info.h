// Facts about a run, saved with each result: machine, cores, kernel, versions, commit, command.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace kolo::bench {

// {"machine", "cores", "kernel", "compiler", "kolo", "commit", "command", "environment", "date"}.
// The commit is the build's, with "-dirty" if the sources differed from it; "unknown" without a
// checkout. The environment has every KOLO_... variable except KOLO_STORE, which a launcher sets
// anew each time.
nlohmann::ordered_json run_info();

// "1Gbit,10ms": the network between the ranks, as network/link.py sets it in KOLO_BENCH_NETWORK;
// empty: the machine's own.
std::string network_between_ranks();

// "kolo 0.1.0, commit ee13fa1c10f5".
std::string own_version();

// The command line of this process, on one line.
std::string own_command();

}  // namespace kolo::bench
