// CPU time and memory of this process, as counted by the kernel.
#pragma once

namespace kolo::train {

// CPU time of all its threads, user and system, in seconds.
double cpu_seconds();

// Peak resident memory in MiB; 0 if the kernel does not report it.
double peak_resident_mib();

}  // namespace kolo::train
