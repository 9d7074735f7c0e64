#include "bench/measure/cores.h"

#include <fmt/format.h>
#include <pthread.h>
#include <sched.h>
#include <sys/utsname.h>

#include <algorithm>
#include <fstream>
#include <span>

#include "transports/posix/host/cores.h"

namespace kolo::bench {
namespace {

void bind_to_cores(std::span<const int> cores) {
  const auto count = static_cast<std::size_t>(std::ranges::max(cores)) + 1;
  cpu_set_t* const set = CPU_ALLOC(count);
  const std::size_t bytes = CPU_ALLOC_SIZE(count);
  CPU_ZERO_S(bytes, set);
  for (const int core : cores) CPU_SET_S(static_cast<std::size_t>(core), bytes, set);
  pthread_setaffinity_np(pthread_self(), bytes, set);
  CPU_FREE(set);
}

}  // namespace

const std::vector<int>& available_cores() {
  static const std::vector<int> cores = posix::affinity_cores();
  return cores;
}

void bind_rank(int rank, int ranks) {
  const std::span cores(available_cores());
  const auto mine = static_cast<std::size_t>(rank);
  const auto all = static_cast<std::size_t>(ranks);
  if (all > cores.size()) return bind_to_core(cores[mine % cores.size()]);
  const std::size_t begin = mine * cores.size() / all;
  bind_to_cores(cores.subspan(begin, (mine + 1) * cores.size() / all - begin));
}

Unbound::Unbound() : before_(posix::affinity_cores()) { bind_to_cores(available_cores()); }
Unbound::~Unbound() { bind_to_cores(before_); }

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
  const std::size_t cores = available_cores().size();
  return fmt::format("{}, {} {}, {} {}", describe_processor(), cores, cores == 1 ? "core" : "cores",
                     system.sysname, system.release);
}

}  // namespace kolo::bench
