// Channel statistics: the bytes counted equal the algorithms' formulas, without headers.
#include <string>
#include <vector>

#include "collectives/algorithms/binomial_tree.h"
#include "collectives/algorithms/parameter_server.h"
#include "collectives/algorithms/ring.h"
#include "test/collectives/support/ranks.h"
#include "test/support/catch.h"

namespace kolo::test {
namespace {

void expect_sent(Communicator& communicator, std::uint64_t before, std::size_t elements,
                 const std::string& what) {
  const auto sent = communicator.statistics().payload_bytes_sent - before;
  expect(sent == elements * sizeof(float), what + " sent " + std::to_string(sent) + " bytes, not " +
                                               std::to_string(elements * sizeof(float)));
}

}  // namespace

TEST_CASE("each rank sends exactly the bytes of the formula") {
  const auto transport = GENERATE(from_range(transports_under_test()));
  const auto size = GENERATE(1, 2, 3, 4);
  const auto count = GENERATE(std::size_t{0}, std::size_t{1}, std::size_t{10}, std::size_t{40},
                              std::size_t{100'003});
  run_ranks(size, transport, [&](Communicator& communicator) {
    const int rank = communicator.rank();
    std::vector<float> in(count);
    std::vector<float> out(count);
    const CallOptions by_ring{.algorithm = "ring"};
    const auto sent = [&] { return communicator.statistics().payload_bytes_sent; };
    auto before = sent();
    communicator.all_reduce({in.data(), count, ElementType::kFloat32},
                            {out.data(), count, ElementType::kFloat32}, ReduceOp::kSum, by_ring);
    expect_sent(communicator, before, ring_all_reduce_sent(rank, size, count), "all_reduce");
    before = sent();
    communicator.reduce_scatter(
        {in.data(), count, ElementType::kFloat32},
        {out.data(), chunk_count(count, communicator.size(), communicator.rank()),
         ElementType::kFloat32},
        ReduceOp::kSum, by_ring);
    expect_sent(communicator, before, ring_reduce_scatter_sent(rank, size, count),
                "reduce_scatter");
    before = sent();
    communicator.all_gather(
        {in.data(), chunk_count(count, communicator.size(), communicator.rank()),
         ElementType::kFloat32},
        {out.data(), count, ElementType::kFloat32}, by_ring);
    expect_sent(communicator, before, ring_all_gather_sent(rank, size, count), "all_gather");
    before = sent();
    communicator.broadcast({out.data(), count, ElementType::kFloat32}, size - 1,
                           {.algorithm = "binomial_tree"});
    expect_sent(communicator, before, binomial_tree_broadcast_sent(rank, size, size - 1, count),
                "broadcast");
    before = sent();
    communicator.push_pull({in.data(), count, ElementType::kFloat32},
                           {out.data(), count, ElementType::kFloat32}, ReduceOp::kSum,
                           {.everywhere = true, .servers = {}});
    ParameterServerRequest servers{.rank = rank, .size = size, .servers = {}, .servers_work = true};
    for (int server = 0; server < size; ++server) servers.servers.push_back(server);
    expect_sent(communicator, before, parameter_server_sent(servers, count), "push_pull");
    expect(communicator.statistics().operations == 5, "five operations were done");
  });
}

TEST_CASE("received bytes and headers are counted as well") {
  const auto transport = GENERATE(from_range(transports_under_test()));
  run_ranks(2, transport, [](Communicator& communicator) {
    std::vector<float> data(12'345);
    communicator.all_reduce(std::span<float>(data));
    const CommunicatorStatistics counted = communicator.statistics();
    expect(counted.payload_bytes_received > 0, "nothing was received");
    communicator.all_reduce(std::span<float>(data).first(1));
    expect(communicator.statistics().header_bytes_sent > counted.header_bytes_sent,
           "a header is counted for every operation");
  });
}

}  // namespace kolo::test
