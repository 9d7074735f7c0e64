#include "bench/cores.h"

#include <fmt/format.h>
#include <pthread.h>
#include <sched.h>
#include <sys/utsname.h>

#include <algorithm>
#include <fstream>
#include <span>

#include "transports/posix/cores.h"

namespace kolo::bench {
namespace {

void bind_to_cores(std::span<const int> cores) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int core : cores) CPU_SET(static_cast<unsigned>(core), &set);
  pthread_setaffinity_np(pthread_self(), sizeof set, &set);
}

}  // namespace

const std::vector<int>& available_cores() {
  static const std::vector<int> cores = posix::affinity_cores();
  return cores;
}

void bind_rank(int rank, int ranks) {
  const std::span cores(available_cores());
  const std::size_t share =
      std::max<std::size_t>(1, cores.size() / static_cast<std::size_t>(ranks));
  bind_to_cores(cores.subspan(static_cast<std::size_t>(rank) * share % cores.size(), share));
}

void unbind() { bind_to_cores(available_cores()); }

void bind_to_core(int core) { bind_to_cores({&core, 1}); }

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
  return fmt::format("{}, {} cores, {} {}", describe_processor(), available_cores().size(),
                     system.sysname, system.release);
}

}  // namespace kolo::bench
