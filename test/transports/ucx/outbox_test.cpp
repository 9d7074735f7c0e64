// Sends over UCX: numbers, credit, places and held segments.
#include "transports/ucx/outbox.h"

#include <string>

#include "test/support/catch.h"
#include "test/transports/ucx/fake_ucx.h"

using namespace kolo;
using namespace kolo::test;
using ucx::Kind;
using ucx::kWindow;

namespace {

constexpr std::uint32_t kToken = 77;

struct Departures {
  ucx::Worker worker{fake_library(), 2};
  ucx::Outbox outbox{worker, kToken, 3, 4096};

  void send(std::string_view text, std::uint32_t released = 0) {
    outbox.send_segment(std::as_bytes(std::span(text)), released);
  }
  void hold(std::string_view text) { outbox.hold(std::as_bytes(std::span(text))); }
};

ucx::ReadHeader header_of(const FakeUcx::Sent& sent) {
  const auto read = ucx::read_header(sent.header.data(), sent.header.size());
  REQUIRE(read.has_value());
  return *read;
}

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

void finish(const FakeUcx::Sent& sent, ucs_status_t status = UCS_OK) {
  int request = 0;
  sent.callback(&request, status, sent.user_data);
}

}  // namespace

TEST_CASE("a header gives the sender, the segment number and the returned credit") {
  Departures departures;
  departures.send("a");
  departures.send("b", 9);
  const auto header = header_of(played().sent.at(1)).header;
  CHECK(header.token == kToken);
  CHECK(header.from == 3);
  CHECK(header.number == 1);
  CHECK(header.released == 9);
}

TEST_CASE(
    "a window of segments is sent before the peer releases any, then one per released segment") {
  Departures departures;
  for (std::uint32_t i = 0; i < kWindow; ++i) {
    REQUIRE(departures.outbox.has_place());
    departures.send("x");
  }
  CHECK_FALSE(departures.outbox.has_place());
  departures.outbox.give_credit(1);
  REQUIRE(departures.outbox.has_place());
  departures.send("x");
  CHECK_FALSE(departures.outbox.has_place());
}

TEST_CASE("credit that arrives late, twice or for unsent segments is ignored") {
  Departures departures;
  for (std::uint32_t i = 0; i < kWindow; ++i) departures.send("x");
  departures.outbox.give_credit(3);
  departures.outbox.give_credit(2);
  departures.outbox.give_credit(kWindow + 1);
  departures.outbox.give_credit(3);
  for (int i = 0; i < 3; ++i) {
    REQUIRE(departures.outbox.has_place());
    departures.send("x");
  }
  CHECK_FALSE(departures.outbox.has_place());
}

TEST_CASE("a place is in use until its send completes, in any order of completion") {
  Departures departures;
  played().completes_at_once = false;
  for (std::uint32_t i = 0; i < kWindow; ++i) departures.send("x");
  departures.outbox.give_credit(kWindow);
  CHECK_FALSE(departures.outbox.has_place());
  finish(played().sent.at(1));
  CHECK_FALSE(departures.outbox.has_place());
  finish(played().sent.at(0));
  CHECK(departures.outbox.has_place());
  CHECK_FALSE(departures.outbox.is_drained());
  for (std::size_t i = 2; i < kWindow; ++i) finish(played().sent.at(i));
  CHECK(departures.outbox.is_drained());
}

TEST_CASE("a held segment is sent behind the header of the next one") {
  Departures departures;
  departures.hold("before");
  CHECK(played().sent.empty());
  CHECK_FALSE(departures.outbox.is_drained());
  departures.send("after");
  REQUIRE(played().sent.size() == 1);
  const auto read = header_of(played().sent[0]);
  CHECK(read.header.number == 1);
  CHECK(text_of(read.before) == "before");
  CHECK(text_of(played().sent[0].data) == "after");
  CHECK(departures.outbox.is_drained());
}

TEST_CASE("a held segment is sent alone if no other one follows") {
  Departures departures;
  departures.hold("alone");
  departures.outbox.send_held(4);
  const auto read = header_of(played().sent.at(0));
  CHECK(read.header.number == 0);
  CHECK(read.header.released == 4);
  CHECK(read.before.empty());
  CHECK(text_of(played().sent[0].data) == "alone");
  departures.send("next");
  CHECK(header_of(played().sent.at(1)).header.number == 1);
}

TEST_CASE("a header of a wrong length is invalid") {
  const std::vector<std::byte> bytes(ucx::kHeaderBytes + ucx::kMostBefore + 1);
  CHECK_FALSE(ucx::read_header(bytes.data(), 0));
  CHECK_FALSE(ucx::read_header(bytes.data(), ucx::kHeaderBytes - 1));
  CHECK_FALSE(ucx::read_header(bytes.data(), bytes.size()));
  CHECK(ucx::read_header(bytes.data(), bytes.size() - 1)->before.size() == ucx::kMostBefore);
}

TEST_CASE("the outbox remembers a send that UCX refuses") {
  Departures departures;
  played().completes_at_once = false;
  departures.send("x");
  finish(played().sent.at(0), UCS_ERR_NO_MEMORY);
  CHECK(departures.outbox.failure() == UCS_ERR_NO_MEMORY);
}
