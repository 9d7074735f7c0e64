// Choice of "auto" with devices: cuda_ipc, or staging on all ranks if it does not work on one of
// them, and the ranks that report why.
#include <cstring>
#include <string>
#include <vector>

#include "test/collectives/support/stream_ranks.h"
#include "test/support/catch.h"
#include "transports/cuda/driver.h"

namespace kolo::test {
namespace {

constexpr std::size_t kCount = 1009;

std::vector<std::byte> ones() {
  const std::vector<float> all(kCount, 1);
  std::vector<std::byte> bytes(kCount * sizeof(float));
  std::memcpy(bytes.data(), all.data(), bytes.size());
  return bytes;
}

bool are_threes(const std::byte* memory) {
  const std::vector<float> threes(kCount, 3);
  return std::memcmp(memory, threes.data(), kCount * sizeof(float)) == 0;
}

void sum(const StreamRank& rank, std::byte* memory) {
  CallOptions options;
  options.stream = DeviceStream{rank.stream};
  rank.communicator.all_reduce({memory, kCount, ElementType::kFloat32}, ReduceOp::kSum, options);
}

void expect_said(const std::string& text, const std::string& part) {
  expect(text.find(part) != std::string::npos, "'" + part + "' is not in: " + text);
}

}  // namespace

TEST_CASE("device memory that cannot be shared is staged, and the carrier says why") {
  StreamJob job;
  job.size = 3;
  job.adjust = [](int rank, FakeDriver& driver) {
    if (rank == 1) driver.fail("ipc_open", cuda::kNotSupported, 0);
  };
  run_stream_ranks(job, [](const StreamRank& rank) {
    expect(rank.communicator.transport() != "cuda_ipc", "cuda_ipc is taken");
    expect_said(rank.communicator.carrier(), "staged, as ");
    expect_said(rank.communicator.carrier(), "rank 1 cannot use cuda_ipc");
    expect_said(rank.communicator.carrier(), "CUDA_ERROR_NOT_SUPPORTED");
    std::byte* const memory = rank.upload(ones());
    sum(rank, memory);
    rank.synchronize();
    expect(are_threes(memory), "wrong sums");
  });
  job.options.transport = "cuda_ipc";
  for (const RankOutcome& outcome : try_stream_ranks(job, [](const StreamRank&) {}))
    CHECK_THAT(outcome.text, ContainsSubstring("rank 1 cannot use cuda_ipc") &&
                                 ContainsSubstring("of rank 0's memory") &&
                                 ContainsSubstring("CUDA_ERROR_NOT_SUPPORTED"));
}

TEST_CASE("all ranks stage if any rank cannot open the memory of any one peer") {
  for (const int refusing : {0, 1, 2}) {
    StreamJob job;
    job.size = 3;
    job.adjust = [refusing](int rank, FakeDriver& driver) {
      if (rank == refusing) driver.fail("ipc_open", cuda::kNotSupported, 2);
    };
    const int other = refusing == 2 ? 1 : 2;  // the second of the two peers that it opens
    run_stream_ranks(job, [refusing, other](const StreamRank& rank) {
      expect_said(rank.communicator.carrier(), "staged, as ");
      expect_said(rank.communicator.carrier(),
                  "rank " + std::to_string(refusing) + " cannot use cuda_ipc");
      expect_said(rank.communicator.carrier(), "of rank " + std::to_string(other) + "'s memory");
      std::byte* const memory = rank.upload(ones());
      sum(rank, memory);
      rank.synchronize();
      expect(are_threes(memory), "wrong sums");
    });
  }
}

TEST_CASE("auto stages if a rank has no device, and the carrier says so") {
  StreamJob job;
  job.size = 3;
  job.hosts = {1};
  run_stream_ranks(job, [](const StreamRank& rank) {
    expect(rank.communicator.transport() != "cuda_ipc", "cuda_ipc is taken");
    if (rank.has_device())
      expect_said(rank.communicator.carrier(), "staged, as rank 1 has no device");
    else
      expect(rank.communicator.carrier().find("staged") == std::string::npos, "without a device");
  });
}

}  // namespace kolo::test
