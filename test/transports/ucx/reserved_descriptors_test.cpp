// Descriptors that UCX may need but cannot get: kolo reports this before UCX detects it and aborts.
#include "transports/ucx/reserved_descriptors.h"

#include <array>
#include <functional>
#include <string>

#include "test/support/catch.h"
#include "test/transports/support/descriptor_limit.h"
#include "test/transports/ucx/fake_shared_state.h"
#include "transports/error.h"
#include "transports/ucx/channel.h"

using namespace kolo;
using namespace kolo::test;
using ucx::ReservedDescriptors;

namespace {

// Limits this process to `more` additional descriptors.
class FewDescriptors {
 public:
  explicit FewDescriptors(int more) {
    rlimit limit{};
    ::getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur += static_cast<rlim_t>(more);
    ::setrlimit(RLIMIT_NOFILE, &limit);
  }

 private:
  const DescriptorLimit none_;
};

std::string why_unavailable(const std::function<void()>& call, int peer = kNoPeer) {
  try {
    call();
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kUnavailable);
    CHECK(error.peer() == peer);
    return error.what();
  }
  return "it was not refused";
}

}  // namespace

TEST_CASE("a descriptor that is reserved for one rank is not available to another one") {
  const FewDescriptors few(20);
  {
    ReservedDescriptors first(5, 10);
    first.opened();
    const std::string why = why_unavailable([] { ReservedDescriptors(5, 6); });
    CHECK_THAT(why, ContainsSubstring("may need 11 more") && ContainsSubstring("can have 10: ") &&
                        ContainsSubstring("ulimit -n") && ContainsSubstring("KOLO_TRANSPORT"));
    ReservedDescriptors second(2, 3);
    second.opened();
    ReservedDescriptors(0, 7);
    CHECK_THAT(why_unavailable([] { ReservedDescriptors(0, 8); }),
               ContainsSubstring("can have 7: "));
  }
  ReservedDescriptors(5, 15);
}

TEST_CASE(
    "a rank without descriptors to connect names its peer, and continues once some are free") {
  FakeSharedState station;
  ucx::UcxChannel channel(station, 1, 4096, 4096);
  const std::array<std::byte, 8> data{};
  {
    const FewDescriptors few(7);
    const std::string why = why_unavailable([&] { channel.send(data, kPlain); }, 1);
    CHECK_THAT(why, ContainsSubstring("rank 0: cannot connect to rank 1 (ucx): ") &&
                        ContainsSubstring("may need 8 more") && ContainsSubstring("ulimit -n"));
    CHECK(channel.statistics().segments_sent == 0);
    CHECK(played().sent.empty());
  }
  CHECK(channel.send(data, kPlain));
}

TEST_CASE("each rank connects with its reserved descriptors during the bootstrap") {
  FakeSharedState station;
  ucx::UcxChannel channel(station, 1, 4096, 4096);
  const FewDescriptors few(3);
  station.is_meeting = true;
  ReservedDescriptors promised(0, 3);
  promised.opened();
  CHECK_NOTHROW(channel.connect());
}
