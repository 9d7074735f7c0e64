// Meeting point of a job whose launcher sets neither KOLO_STORE nor MASTER_ADDR: where rank 0
// serves the store, derived by each rank alone from its launcher's variables.
//
//   srun        the first host of the step; ports derived from the job's and the step's id
//   torchrun    MASTER_ADDR, whose MASTER_PORT the agent uses; the ports that follow it
//   Kubernetes  the pod with index 0 of the Job, by the name that the headless service gives it
//
// A port may belong to another program. So there are several, and clients name their job.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "transports/rendezvous.h"
#include "transports/settings.h"

namespace kolo::inline v0::launch {

// Nothing if the launcher's variables name no host and no port.
std::optional<StorePlaces> meeting_point(const Settings& settings);

// The first host of a list of Slurm: node02 of "node[02-04,7],gpu[1-2]".
std::string first_host(std::string_view list);

// "train-0.kolo.default.svc" of "train-3.kolo.default.svc" and 3. Empty if `name`, up to its first
// dot, does not end in the index.
std::string first_pod(std::string_view name, int index);

}  // namespace kolo::inline v0::launch
