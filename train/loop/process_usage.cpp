#include "train/loop/process_usage.h"

#include <sys/resource.h>

#include <fstream>
#include <string>

namespace kolo::train {
namespace {

double seconds_of(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}

}  // namespace

double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime);
}

// Does not use getrusage: its maximum survives exec, so it could be that of the parent process.
double peak_resident_mib() {
  std::ifstream status("/proc/self/status");
  std::string word;
  while (status >> word) {
    if (word != "VmHWM:") continue;
    double kib = 0;
    status >> kib;
    return kib / 1024;
  }
  return 0;
}

}  // namespace kolo::train
