// Where the threads of a measurement run, and on what machine.
#pragma once

#include <string>

namespace kolo::bench {

// Binds the calling thread; silently without effect where the system refuses.
void bind_to_core(int core);

// One short wait inside a spin loop.
void relax();

// "AMD EPYC 9B14"; "unknown processor" where the kernel does not tell.
std::string describe_processor();

// "AMD EPYC 9B14, 2 cores, Linux 6.18.0".
std::string describe_machine();

}  // namespace kolo::bench
