// Messages between ranks over libfabric: tags, immediate data and endpoint addresses.
#include "transports/ofi/tag.h"
#include "test/support/catch.h"
#include "transports/error.h"
#include "transports/ofi/bootstrap.h"
#include "transports/ofi/provider.h"

namespace kolo::ofi {

namespace {

EndpointAddress some_address() {
  EndpointAddress address;
  address.provider = "tcp;ofi_rxm";
  address.name = std::string("\x02\x00\xff\x7f", 4);
  address.segment_bytes = 65536;
  address.window = 32;
  address.token = 0xDEADBEEF;
  address.process = "host/boot/net:[1]/pid:[2]/77";
  address.liveness = {"host/boot/net:[1]", "00b1f", "10.0.0.2", 40133, 0xFFFFFFFFFFFFFFFF};
  return address;
}

}  // namespace

TEST_CASE("tags of other ranks, other tokens and control messages differ") {
  CHECK(data_tag(7, 1) != data_tag(7, 2));
  CHECK(data_tag(7, 1) != data_tag(8, 1));
  CHECK(data_tag(0xFFFFFFFF, 65535) != control_tag(0xFFFFFFFF));
  CHECK(data_tag(7, 0) != control_tag(7));
}

TEST_CASE("immediate data survives packing and unpacking") {
  const ImmediateData word = immediate_from_bits(to_bits({MessageKind::kEnd, 65535, 123456789012}));
  CHECK(word.kind == MessageKind::kEnd);
  CHECK(word.rank == 65535);
  CHECK(word.count == 123456789012);
}

TEST_CASE("a count is restored from its last bits, and old messages do not change it") {
  constexpr std::uint64_t kRound = kCountMask + 1;
  CHECK(whole_count(5, 3) == 5);
  CHECK(whole_count(3, 5) == 5);
  CHECK(whole_count(2, kRound - 1) == kRound + 2);
  CHECK(whole_count(kCountMask, kRound + 2) == kRound + 2);
}

TEST_CASE("tcp means the best variant that the library has, and defaults reach other hosts") {
  const auto tcp = providers_meant("tcp");
  CHECK(tcp.back() == "tcp;ofi_rxm");
  CHECK(tcp.size() == (major_version() >= 2 ? 2 : 1));
  CHECK(providers_meant("tcp;ofi_rxm") == std::vector<std::string>{"tcp;ofi_rxm"});
  CHECK(providers_meant("verbs;ofi_rxm") == std::vector<std::string>{"verbs;ofi_rxm"});
  for (const auto& name : providers_meant("")) CHECK_FALSE(known_provider(name).is_within_host);
}

TEST_CASE("only a provider that is asked for by name may use RDMA hardware") {
  for (const char* const name : {"", "tcp", "tcp;ofi_rxm", "sockets", "shm"})
    CHECK_FALSE(may_use_rdma(name));
  CHECK(may_use_rdma("verbs;ofi_rxm"));
}

TEST_CASE("shm is refused if its regions do not fit into the free part of /dev/shm") {
  constexpr std::uint64_t kMiB = 1 << 20;
  CHECK(why_no_room("shm", 12, 60 * kMiB).empty());
  CHECK(why_no_room("shm", 13, 64 * kMiB) ==
        "it needs 65 MiB of /dev/shm for 13 ranks, and 64 are free: make more room there (docker "
        "run --shm-size), or choose tcp (KOLO_OFI_PROVIDER)");
  CHECK(why_no_room("tcp", 13, 0).empty());
  CHECK(why_no_room("no_such", 13, 0).empty());
}

TEST_CASE("an endpoint address survives writing and reading, zero bytes included") {
  const EndpointAddress read = address_from_text(to_text(some_address()), 3);
  CHECK(read.provider == "tcp;ofi_rxm");
  CHECK(read.name == some_address().name);
  CHECK(read.segment_bytes == 65536);
  CHECK(read.window == 32);
  CHECK(read.token == 0xDEADBEEF);
  CHECK(read.process == some_address().process);
  CHECK(read.liveness.unix_name == "00b1f");
  CHECK(read.liveness.tcp_host == "10.0.0.2");
  CHECK(read.liveness.tcp_port == 40133);
  CHECK(read.liveness.ticket == 0xFFFFFFFFFFFFFFFF);
}

TEST_CASE("the reason for a missing endpoint survives writing and reading") {
  EndpointAddress address;
  address.why_not = "libfabric's provider shm fails in fi_enable: No space left on device";
  CHECK(address_from_text(to_text(address), 1).why_not == address.why_not);
}

TEST_CASE("an endpoint address with an impossible window is refused") {
  for (const std::size_t window : {std::size_t{0}, std::size_t{7}, std::size_t{33}, SIZE_MAX}) {
    INFO(window);
    EndpointAddress address = some_address();
    address.window = window;
    try {
      address_from_text(to_text(address), 3);
      FAIL("it was taken");
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::kProtocol);
      CHECK(error.peer() == 3);
    }
  }
}

TEST_CASE("an incomplete or foreign endpoint address is refused, and the error names the rank") {
  const std::string whole = to_text(some_address());
  std::vector<std::string> wrong = {"", "hello", "1" + whole.substr(1),
                                    "2 shm zz 1 1 1 p h u t 1 1", "2 shm abc 1 1 1 p h u t 1 1"};
  for (std::size_t words = whole.rfind(' '); words != std::string::npos && words > 0;
       words = whole.rfind(' ', words - 1))
    wrong.push_back(whole.substr(0, words));
  for (const std::string& text : wrong) {
    INFO(text);
    try {
      address_from_text(text, 3);
      FAIL("it was taken");
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::kProtocol);
      CHECK(error.peer() == 3);
      CHECK(std::string(error.what()).find("rank 3") != std::string::npos);
    }
  }
}

}  // namespace kolo::ofi
