// What a saved result says of its run: machine, cores, kernel, versions, commit, command.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace kolo::bench {

// {"machine", "cores", "kernel", "compiler", "kolo", "commit", "command", "environment", "date"}.
// The commit is that of the build, with "-dirty" where the sources differed from it; "unknown"
// where they were no checkout. The environment: every variable KOLO_... that was set, but for
// KOLO_STORE, which a launcher chooses anew each time.
nlohmann::ordered_json run_info();

// "1Gbit,10ms": the network that the ranks are joined by, where what made it says so
// (KOLO_BENCH_NETWORK, network/link.py); empty: this machine's own.
std::string network_between_ranks();

// "kolo 0.1.0, commit ee13fa1c10f5".
std::string own_version();

// How this process was started, on one line.
std::string own_command();

}  // namespace kolo::bench
