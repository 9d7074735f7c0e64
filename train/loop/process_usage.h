// What this process has used so far, as the kernel counts it.
#pragma once

namespace kolo::train {

// CPU time of all its threads, user and system, in seconds.
double cpu_seconds();

// The most memory that was resident at one time, in MiB; 0 where the kernel does not say.
double peak_resident_mib();

}  // namespace kolo::train
