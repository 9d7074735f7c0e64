#include "bench/cli/commands.h"

#include "collectives/communicator.h"

namespace kolo::bench {

const std::map<std::string, Collective>& collective_commands() {
  static const std::map<std::string, Collective> commands = {
      {"allreduce", Collective::kAllReduce}, {"reduce_scatter", Collective::kReduceScatter},
      {"allgather", Collective::kAllGather}, {"broadcast", Collective::kBroadcast},
      {"barrier", Collective::kBarrier},     {"push_pull", Collective::kPushPull},
      {"push", Collective::kPush},           {"pull", Collective::kPull},
      {"reduce", Collective::kReduce},       {"gather", Collective::kGather},
      {"scatter", Collective::kScatter},     {"alltoall", Collective::kAllToAll},
      {"scan", Collective::kScan},           {"exclusive_scan", Collective::kExclusiveScan},
  };
  return commands;
}

std::vector<std::string> collective_command_names() {
  std::vector<std::string> names;
  for (const auto& command : collective_commands()) names.push_back(command.first);
  return names;
}

std::string long_command(const std::string& name) {
  for (const auto& [command, collective] : collective_commands()) {
    if (command == name && to_string(collective) != name) return std::string(to_string(collective));
  }
  return "";
}

std::string short_command(const std::string& name) {
  for (const auto& [command, collective] : collective_commands()) {
    if (to_string(collective) == name) return command;
  }
  return name;
}

std::string command_of(Collective collective) {
  for (const auto& [name, measured] : collective_commands()) {
    if (measured == collective) return name;
  }
  return "";
}

std::vector<std::string> commands_with_a_choice() {
  std::vector<std::string> names;
  for (const auto& command : collective_commands()) {
    const bool has_price = !has_servers(command.second);
    if (has_price && algorithm_names(command.second).size() > 1) names.push_back(command.first);
  }
  return names;
}

const char* describe(Collective collective) {
  switch (collective) {
    case Collective::kAllReduce:
      return "Measure allreduce: every rank gets the reduction of all ranks' data";
    case Collective::kReduceScatter:
      return "Measure reduce_scatter: every rank gets its chunk of the reduction";
    case Collective::kAllGather:
      return "Measure allgather: every rank gets all ranks' chunks";
    case Collective::kBroadcast:
      return "Measure broadcast: every rank gets rank 0's data";
    case Collective::kBarrier:
      return "Measure barrier: no rank continues before all have arrived";
    case Collective::kPushPull:
      return "Measure push_pull: a parameter server's sums, pushed and pulled";
    case Collective::kPush:
      return "Measure push: the first half of push_pull, from workers to servers";
    case Collective::kPull:
      return "Measure pull: the second half of push_pull, from servers to workers";
    case Collective::kReduce:
      return "Measure reduce: rank 0 gets the reduction of all ranks' data";
    case Collective::kGather:
      return "Measure gather: rank 0 gets all ranks' chunks";
    case Collective::kScatter:
      return "Measure scatter: every rank gets its chunk of rank 0's data";
    case Collective::kAllToAll:
      return "Measure alltoall: every rank gets a share of every rank's data";
    case Collective::kScan:
      return "Measure scan: every rank gets the reduction of the ranks up to itself";
    case Collective::kExclusiveScan:
      return "Measure exclusive_scan: every rank gets the reduction of the ranks before itself";
    case Collective::kMessage:
      break;
  }
  return "";
}

}  // namespace kolo::bench
