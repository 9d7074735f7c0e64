// One rank on a device, as a process: a program for device_processes_test.cpp.
//
//   device_sum_rank schedules DEVICES                        every algorithm of device_sums.h
//   device_sum_rank communicators TRANSPORT HOSTS DEVICES    calls of a communicator
//
// Rank r is on device r % DEVICES. The last HOSTS ranks have no device.
//
// Exit codes: 0 all results were right; 1 wrong results or a failure, which it prints; 2 wrong
// arguments.
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <vector>

#include "test/collectives/stream/device_sums.h"
#include "transports/conformance/child_process.h"

namespace {

using namespace kolo;
using namespace kolo::test;

SumRank in_job(const SumRank& job, const std::string& name) {
  SumRank named = job;
  named.store = prefixed(job.store, name + "/");
  return named;
}

void run_schedules(SumRank job, int devices) {
  job.devices = devices;
  for (const std::string_view algorithm : kSumAlgorithms) {
    for (const std::size_t count : kSumCounts) {
      const std::string what = std::string(algorithm) + ", " + std::to_string(count) + " floats";
      std::printf("%s\n", what.c_str());
      std::fflush(stdout);
      sum_by_schedule(in_job(job, what), "shm", algorithm, count);
    }
  }
}

void run_communicators(SumRank job, const std::string& transport, int hosts, int devices) {
  job.devices = job.rank < job.size - hosts ? devices : 0;
  for (const std::size_t count : kSumCounts) {
    const std::string what = std::to_string(count) + " floats";
    std::printf("%s\n", what.c_str());
    std::fflush(stdout);
    sum_by_communicator(in_job(job, what), transport, count);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  const bool is_schedules = words.size() == 2 && words[0] == "schedules";
  const bool is_communicators = words.size() == 4 && words[0] == "communicators";
  if (!is_schedules && !is_communicators) return 2;
  conformance::end_with_parent();
  try {
    const LaunchEnvironment place = launch_environment();
    const auto store = store_from_environment(place, Clock::now() + kDevicePatience);
    store->join(place.rank);  // once: the communicators come and go
    const SumRank job{place.rank, place.size, store};
    if (is_schedules) {
      run_schedules(job, std::stoi(words[1]));
    } else {
      run_communicators(job, words[1], std::stoi(words[2]), std::stoi(words[3]));
    }
    store->leave();
  } catch (const std::exception& error) {
    std::printf("%s\n", error.what());
    return 1;
  }
  return 0;
}
