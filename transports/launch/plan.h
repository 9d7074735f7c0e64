// The processes that a launcher starts for a job: its ranks, or an agent on each of several hosts.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "transports/launch/launch.h"
#include "transports/launch/rank_process.h"

namespace kolo::inline v0::launch {

struct Plan {
  struct Process {
    RankProgram program;
    std::string prefix;  // of each line of its output
    std::string name;    // for messages: "rank 3", "host node2"
  };

  std::vector<Process> processes;
  std::string noun = "rank";
  std::vector<std::string> own_variables;  // "NAME=VALUE", in no process of another job
  // For messages: what to do if a process ends with this exit code; may be empty.
  std::function<std::string(int code)> advice = [](int) { return std::string(); };
  std::shared_ptr<void> services;  // the job's store, and a reserved port
};

Plan plan_of(const LaunchRequest& request);

}  // namespace kolo::inline v0::launch
