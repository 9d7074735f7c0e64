// One rank of a job on several hosts: a program for hosts_test.cpp.
//
//   multi_host_rank COUNT
//
// Reduces COUNT integers hierarchically. Prints the transport, the hosts, and the bytes that this
// rank sent to other hosts. Exits with 1 if a sum is wrong.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <vector>

#include "collectives/communicator.h"

namespace {

int run(std::size_t count) {
  auto communicator = kolo::Communicator::from_environment();
  std::vector<std::int32_t> data(count);
  for (std::size_t i = 0; i < count; ++i) {
    data[i] = static_cast<std::int32_t>(i) + communicator.rank();
  }
  communicator.all_reduce({data.data(), count, kolo::ElementType::kInt32}, kolo::ReduceOp::kSum,
                          {.algorithm = "hierarchical"});
  const int size = communicator.size();
  for (std::size_t i = 0; i < count; ++i) {
    const auto expected = size * static_cast<std::int32_t>(i) + size * (size - 1) / 2;
    if (data[i] != expected) {
      std::printf("element %zu is %d, not %d\n", i, data[i], expected);
      return 1;
    }
  }
  std::printf("over %.*s on hosts", static_cast<int>(communicator.transport().size()),
              communicator.transport().data());
  for (const int host : communicator.hosts()) std::printf(" %d", host);
  std::printf(": %llu bytes to other hosts\n",
              static_cast<unsigned long long>(communicator.statistics().bytes_sent_to_other_hosts));
  return 0;
}

}  // namespace

int main(int argc, char** argv) try {
  return argc == 2 ? run(std::strtoull(argv[1], nullptr, 10)) : 2;
} catch (const std::exception& error) {
  std::printf("%s\n", error.what());
  return 3;
}
