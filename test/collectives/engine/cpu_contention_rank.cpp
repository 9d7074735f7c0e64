// One rank of a job whose cores are busy with another library's threads: a program for
// engine/cpu_contention_test.cpp.
//
//   cpu_contention_rank TRANSPORT beside|between THREADS
//
// Runs all-reduces in a loop. With "beside", THREADS threads of OpenMP compute all the time. With
// "between", they compute between the all-reduces and then wait for more work in OpenMP's own way.
// Exits with 1 if a sum is wrong.
#include <omp.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <thread>
#include <vector>

#include "collectives/communicator.h"

namespace {

constexpr std::size_t kCounts[] = {1, 1'000, 50'000};
constexpr int kRounds = 60;

// Global, not captured by a parallel region: the thread sanitizer does not see OpenMP's ordering.
std::atomic<bool> is_over{false};
std::atomic<double> sink{0};

void compute() {
  double sum = 0;
  for (int i = 0; i < 200'000; ++i) sum += 1.0 / (1.0 + i);
  sink.store(sum, std::memory_order_relaxed);
}

void compute_together() {
#pragma omp parallel
  compute();
}

void compute_until_over() {
#pragma omp parallel
  while (!is_over) compute();
}

bool reduce(kolo::Communicator& communicator, std::size_t count, int round) {
  std::vector<float> data(count, static_cast<float>(communicator.rank() + round));
  communicator.all_reduce(std::span<float>(data));
  const int size = communicator.size();
  const auto expected = static_cast<float>(size * (size - 1) / 2 + size * round);
  for (const float value : data) {
    if (value == expected) continue;
    std::printf("round %d, %zu elements: %g, not %g\n", round, count, static_cast<double>(value),
                static_cast<double>(expected));
    return false;
  }
  return true;
}

bool run(const std::string& transport, bool is_beside) {
  kolo::CommunicatorOptions options;
  options.transport = transport;
  options.timeout = std::chrono::seconds(120);
  auto communicator = kolo::Communicator::from_environment(options);
  bool is_right = true;
  for (int round = 0; round < kRounds && is_right; ++round) {
    if (!is_beside) compute_together();
    for (const std::size_t count : kCounts) is_right &= reduce(communicator, count, round);
  }
  return is_right;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const bool is_beside = std::string(argv[2]) == "beside";
  omp_set_num_threads(std::atoi(argv[3]));
  int code = 3;
  std::thread computation;
  if (is_beside) {
    computation = std::thread([threads = std::atoi(argv[3])] {
      omp_set_num_threads(threads);
      compute_until_over();
    });
  }
  try {
    code = run(argv[1], is_beside) ? 0 : 1;
  } catch (const std::exception& error) {
    std::printf("%s\n", error.what());
  }
  is_over = true;
  if (computation.joinable()) computation.join();
  return code;
}
