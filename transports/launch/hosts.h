// Ranks on several hosts, started over ssh: the hosts file, and the command for each host.
//
// On each host the launcher starts an agent: kolo-run itself with the option --agent, at the same
// path and in the same folder. The agent starts the host's ranks and prefixes their output. Its
// standard input is the lifeline: a byte there is a signal to pass on to the ranks, and its end is
// the end of the launcher or of the connection, upon which the agent ends its ranks.
//
// The launcher serves the store. Agents reach it at the address from which ssh came.
#pragma once

#include <string>
#include <vector>

#include "transports/launch/launch.h"

namespace kolo::inline v0::launch {

// Hosts of a file with lines "HOST" or "HOST slots=N"; # begins a comment. Ranks are given in
// blocks in the order of lines. `ranks`: their number; 0: one for each slot. std::invalid_argument
// names the file and line, or says that there are too few slots.
std::vector<HostShare> read_hosts(const std::string& path, int ranks);

// The command that starts the agent of a host. It passes on the variables of kolo and of the
// libraries that it may use, and PATH and LD_LIBRARY_PATH.
std::vector<std::string> command_for(const HostShare& share, const LaunchRequest& request,
                                     int store_port);

// Reads the value of --agent: "FIRST,SIZE,PORT,HOST". std::invalid_argument if it is not one.
PartOfJob parse_part(const std::string& text);

// One word for a POSIX shell.
std::string shell_word(const std::string& text);

}  // namespace kolo::inline v0::launch
