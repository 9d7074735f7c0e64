#include "bench/cores.h"

#include <fmt/format.h>
#include <pthread.h>
#include <sched.h>
#include <sys/utsname.h>

#include <fstream>

#include "transports/posix/cores.h"

namespace kolo::bench {
void bind_to_core(int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<unsigned>(core), &set);
  pthread_setaffinity_np(pthread_self(), sizeof set, &set);
}

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

std::string describe_processor() {
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  while (std::getline(file, line)) {
    const auto colon = line.find(": ");
    if (line.rfind("model name", 0) == 0 && colon != std::string::npos)
      return line.substr(colon + 2);
  }
  return "unknown processor";
}

std::string describe_machine() {
  utsname system{};
  uname(&system);
  return fmt::format("{}, {} cores, {} {}", describe_processor(), posix::affinity_cores().size(),
                     system.sysname, system.release);
}

}  // namespace kolo::bench
