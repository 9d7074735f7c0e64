// One rank that sums until its job fails: a program for faults_test.py.
//
// Prints "started" after the first sum, and at the end the error's text and the rank that it names.
#include <cstdio>
#include <exception>
#include <vector>

#include "collectives/communicator.h"
#include "transports/error.h"

int main() try {
  auto communicator = kolo::Communicator::from_environment();
  std::vector<float> data(1000);
  const auto sum = [&] {
    communicator.all_reduce(data, kolo::ReduceOp::kSum, {.algorithm = "ring"});
  };
  sum();
  std::puts("started");
  std::fflush(stdout);
  while (true) sum();
} catch (const kolo::Error& error) {
  std::printf("%s\npeer %d\n", error.what(), error.peer());
  return 1;
} catch (const std::exception& error) {
  std::printf("%s\n", error.what());
  return 2;
}
