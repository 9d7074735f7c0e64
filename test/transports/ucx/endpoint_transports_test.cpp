// Transports of a connection, read from UCX's printed text, and the eager limits that follow.
#include "transports/ucx/endpoint_transports.h"

#include <cstdint>
#include <string>

#include "test/support/catch.h"
#include "test/transports/ucx/fake_ucx.h"
#include "transports/ucx/outbox.h"

using namespace kolo;
using namespace kolo::test;

namespace {

constexpr const char* kTcp =
    "#\n# UCP endpoint \n#\n#               peer: <no debug data>\n"
    "#                 lane[0]:  0:tcp/lo.0 md[0]                -> md[0]/tcp/sysdev[255] rma_bw#0 "
    "am am_bw#0\n"
    "#                 lane[1]:  1:tcp/eth0.0 md[0]              -> md[0]/tcp/sysdev[255] rma_bw#1 "
    "wireup\n#\n#                 am_send: "
    "0..<egr/short>..8185..<egr/zcopy>..8192..<rndv>..(inf)\n";

constexpr const char* kPosixAndCma =
    "#                 lane[0]:  2:posix/memory.0 md[1]          -> md[1]/posix/sysdev[255] am "
    "am_bw#0\n"
    "#                 lane[1]:  3:cma/memory.0 md[2]            -> md[2]/cma/sysdev[255] "
    "rma_bw#0\n";

}  // namespace

TEST_CASE("the transports of a connection are parsed from UCX's text") {
  CHECK(ucx::transports_in(kTcp) == std::vector<std::string>{"tcp", "tcp"});
  CHECK(ucx::transports_in(kPosixAndCma) == std::vector<std::string>{"posix", "cma"});
  CHECK(ucx::transports_in("").empty());
  CHECK(ucx::transports_in("lane[0]: \nlane[1]: tcp\nlane[2]: a/b:c\n").empty());
}

TEST_CASE("the available transports are parsed from UCX's text of its context") {
  constexpr const char* kPrinted =
      "#\n# UCP context\n#\n#     component 0  :  self\n#            md 1  :  component 3  posix \n"
      "#      resource 0  :  md 0  dev 0  flags -- self/memory0\n"
      "#      resource 1  :  md 1  dev 1  flags -- posix/memory\n"
      "#      resource 2  :  md 2  dev 2  flags -- tcp/eth0\n# memory: 1.32MB, file descriptors: "
      "5\n";
  CHECK(ucx::resources_in(kPrinted) == std::vector<std::string>{"self", "posix", "tcp"});
  CHECK(ucx::resources_in("").empty());
  CHECK(ucx::resources_in("resource --\nresource -- /x\nresource 1 -- tcp\n-- a/b\n").empty());
  CHECK(ucx::has_queues({"self", "posix", "tcp"}));
  CHECK(ucx::has_queues({"sysv"}));
  CHECK_FALSE(ucx::has_queues({"tcp", "self"}));
  CHECK_FALSE(ucx::has_queues({}));
}

TEST_CASE("the eager limit is unlimited for copying transports, and left to UCX for unknown ones") {
  CHECK(ucx::eager_bytes({"tcp", "posix", "sysv", "self"}) == SIZE_MAX);
  CHECK(ucx::eager_bytes({"posix", "cma"}) == 128 * 1024);
  CHECK(ucx::eager_bytes({"tcp", "rc_mlx5"}) == 0);
  CHECK(ucx::eager_bytes({"cma", "cuda_ipc"}) == 0);
  CHECK(ucx::eager_bytes({}) == 0);
}

TEST_CASE("tcp and unknown transports may hold back data that counts as sent") {
  CHECK(ucx::keep_sent({"posix", "tcp"}));
  CHECK(ucx::keep_sent({}));
  CHECK_FALSE(ucx::keep_sent({"posix", "cma"}));
}

TEST_CASE("segments up to the limit are sent eagerly, and others and short ones as UCX decides") {
  ucx::Worker worker(fake_library(), 2);
  ucx::Outbox outbox(worker, 7, 3, 4096);
  const std::vector<std::byte> data(4096);
  outbox.send_segment(data, 0);
  outbox.send_eagerly(2048);
  for (const std::size_t bytes : {1024, 1025, 2048, 2049})
    outbox.send_segment(std::span(data).first(bytes), 0);
  std::vector<std::uint32_t> flags;
  for (const auto& sent : played().sent) flags.push_back(sent.flags);
  const std::uint32_t eager = UCP_AM_SEND_FLAG_EAGER;
  CHECK(flags == std::vector<std::uint32_t>{0, 0, eager, eager, 0});
}

TEST_CASE("the text that UCX prints for a connection is captured") {
  const ucx::Worker worker(fake_library(), 2);
  played().carriers = kTcp;
  CHECK(worker.describe(nullptr) == kTcp);
}
