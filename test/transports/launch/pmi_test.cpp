// Conversation of ranks with a launcher of MPICH, which a thread plays.
#include "transports/launch/pmi.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <functional>
#include <future>
#include <string>
#include <vector>

#include "test/support/catch.h"
#include "test/transports/store/store_table.h"
#include "transports/error.h"
#include "transports/posix/descriptor.h"

using namespace kolo;
using namespace kolo::test;

namespace {

struct Connection {
  Connection() {
    std::array<int, 2> both{};
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, both.data()) == 0);
    rank = posix::Descriptor(both[0]);
    launcher = posix::Descriptor(both[1]);
  }

  // The rank's next request, without its newline; empty at the end of the connection.
  std::string request() const {
    std::string line;
    for (char c = 0; ::read(launcher.get(), &c, 1) == 1 && c != '\n';) line += c;
    return line;
  }
  void answer(const std::string& line) const {
    REQUIRE(::write(launcher.get(), (line + "\n").data(), line.size() + 1) > 0);
  }
  void greet() const {
    CHECK(request() == "cmd=init pmi_version=1 pmi_subversion=1");
    answer("cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0");
    CHECK(request() == "cmd=get_my_kvsname");
    answer("cmd=my_kvsname kvsname=kvs_7");
  }

  posix::Descriptor rank, launcher;
};

auto announce(const Connection& connection, int rank, double seconds) {
  return std::async(std::launch::async, [&connection, rank, seconds] {
    return launch::announce_by_pmi(connection.rank.get(), rank, "text", in_seconds(seconds));
  });
}

std::string error_of(std::future<std::string> result) {
  try {
    return "no error, but " + result.get();
  } catch (const Error& error) {
    return error.what();
  }
}

}  // namespace

TEST_CASE("a launcher of MPICH gives the text of rank 0 to all ranks") {
  const std::array<Connection, 2> ranks;
  auto first = announce(ranks[0], 0, 60);
  auto second = announce(ranks[1], 1, 60);
  for (const Connection& rank : ranks) rank.greet();
  CHECK(ranks[0].request() == "cmd=put kvsname=kvs_7 key=kolo-store value=text");
  ranks[0].answer("cmd=put_result rc=0 msg=success");
  for (const Connection& rank : ranks) CHECK(rank.request() == "cmd=barrier_in");
  for (const Connection& rank : ranks) {
    rank.answer("cmd=barrier_out rc=0");
    CHECK(rank.request() == "cmd=get kvsname=kvs_7 key=kolo-store");
    rank.answer("cmd=get_result rc=0 msg=success value=text");
    CHECK(rank.request() == "cmd=finalize");
    rank.answer("cmd=finalize_ack");
  }
  CHECK(first.get() == "text");
  CHECK(second.get() == "text");
}

TEST_CASE("a refusal of the launcher is reported, with its words") {
  const Connection rank;
  auto result = announce(rank, 1, 60);
  rank.request();
  rank.answer("cmd=response_to_init rc=-1");
  CHECK_THAT(error_of(std::move(result)), ContainsSubstring("cmd=response_to_init rc=-1") &&
                                              ContainsSubstring("set MASTER_ADDR"));
}

TEST_CASE("a launcher that has ended is reported") {
  Connection rank;
  rank.launcher.close();
  CHECK_THAT(error_of(announce(rank, 1, 60)), ContainsSubstring("PMI_FD"));
}

TEST_CASE("a rank that never comes to the launcher's barrier ends the wait by the deadline") {
  const Connection rank;
  auto result = announce(rank, 1, 0.1);
  rank.greet();
  CHECK(rank.request() == "cmd=barrier_in");
  CHECK_THAT(error_of(std::move(result)), ContainsSubstring("s for all ranks at the barrier"));
}
