// The whole form: every function of the table is reached by the call of kolo's that it stands for,
// and what kolo itself sees to, it sees to before.
#include <array>
#include <cstring>
#include <map>
#include <string>

#include "test/support/catch.h"
#include "test/transports/plugin/fake_table.h"
#include "transports/error.h"
#include "transports/plugin/load.h"
#include "transports/plugin/transport.h"

// Written to by the functions of the table: one transport with one channel.
struct kolo_transport {
  std::map<std::string, int> calls;
  alignas(64) std::array<std::byte, 256> memory{};
};

using namespace kolo;
using namespace kolo::test;

namespace {

kolo_transport* last_made = nullptr;

kolo_transport& of(kolo_channel* channel) { return *reinterpret_cast<kolo_transport*>(channel); }

template <typename Pointer>
kolo_status give(kolo_transport& transport, const char* call, Pointer* memory) {
  ++transport.calls[call];
  *memory = transport.memory.data();
  return KOLO_DONE;
}

kolo_status count(kolo_transport& transport, const char* call) {
  ++transport.calls[call];
  return KOLO_DONE;
}

void add_whole(kolo_plugin& table) {
  table.completed = nullptr;
  table.make = [](const kolo_plugin_request*, kolo_transport** made, kolo_error*) {
    *made = last_made = std::make_unique<kolo_transport>().release();
    return KOLO_DONE;
  };
  table.destroy = [](kolo_transport* transport) { std::unique_ptr<kolo_transport>{transport}; };
  table.capabilities = [](kolo_channel*, kolo_capabilities* can) {
    can->segment_bytes = can->preferred_segment_bytes = 256;
    can->latency_us = 1.5;
    can->straight_segment_bytes = 192;
  };
  table.reserve = [](kolo_channel* channel, std::size_t, void** slot, kolo_error*) {
    return give(of(channel), "reserve", slot);
  };
  table.commit = [](kolo_channel* channel, unsigned flags, kolo_error*) {
    return count(of(channel), flags == kMore ? "commit more" : "commit");
  };
  table.is_drained = [](kolo_channel*, kolo_error*) { return KOLO_NOT_NOW; };
  table.view = [](kolo_channel* channel, std::size_t, const void** segment, kolo_error*) {
    return give(of(channel), "view", segment);
  };
  table.release = [](kolo_channel* channel, kolo_error*) { return count(of(channel), "release"); };
}

void add_answers(kolo_plugin& table) {
  table.view_to_answer = [](kolo_channel* channel, std::size_t, void** segment, kolo_error*) {
    return give(of(channel), "view_to_answer", segment);
  };
  table.answer = [](kolo_channel* channel, kolo_error*) { return count(of(channel), "answer"); };
  table.view_answer = [](kolo_channel* channel, std::size_t, const void** segment, kolo_error*) {
    return give(of(channel), "view_answer", segment);
  };
  table.release_answer = [](kolo_channel* channel, kolo_error*) {
    return count(of(channel), "release_answer");
  };
}

void add_rest(kolo_plugin& table) {
  table.is_connected = [](kolo_channel*, const char** why_not) {
    *why_not = "nobody is at home";
    return KOLO_NOT_NOW;
  };
  table.counts = [](kolo_channel*, kolo_counts* counts) {
    counts->system_calls = 7;
    counts->connections = 2;
  };
  table.export_memory = [](kolo_transport*, const void*, std::size_t bytes, const void** handle,
                           std::size_t* handle_bytes, kolo_error*) {
    *handle = "han\0dle";
    *handle_bytes = bytes == 0 ? 0 : 7;
    return bytes == 0 ? KOLO_NOT_NOW : KOLO_DONE;
  };
  table.map = [](kolo_channel* channel, const void* handle, std::size_t bytes, void** memory,
                 kolo_error*) {
    if (bytes != 7 || std::memcmp(handle, "han\0dle", 7) != 0) return KOLO_NOT_NOW;
    return give(of(channel), "map", memory);
  };
  table.stream_reserve = [](kolo_channel* channel, void*, std::size_t, void** slot, kolo_error*) {
    return give(of(channel), "stream_reserve", slot);
  };
  table.stream_commit = [](kolo_channel* channel, void*, unsigned, kolo_error*) {
    return count(of(channel), "stream_commit");
  };
  table.stream_view = [](kolo_channel* channel, void*, std::size_t, const void** segment,
                         kolo_error*) { return give(of(channel), "stream_view", segment); };
  table.stream_release = [](kolo_channel* channel, void*, kolo_error*) {
    return count(of(channel), "stream_release");
  };
}

void add_sleep_and_memory(kolo_plugin& table) {
  table.descriptor = [](kolo_transport* transport) { return ++transport->calls["descriptor"], 77; };
  table.arm = [](kolo_transport* transport, kolo_error*) { return count(*transport, "arm"); };
  table.disarm = [](kolo_transport* transport) { ++transport->calls["disarm"]; };
  table.allocate = [](kolo_transport* transport, std::size_t, void** memory, void** owner,
                      kolo_error*) {
    *owner = nullptr;
    return give(*transport, "allocate", memory);
  };
  table.free_memory = [](void*) {};
}

kolo_plugin whole_table() {
  kolo_plugin table = fake_table("whole");
  add_whole(table);
  add_answers(table);
  add_rest(table);
  add_sleep_and_memory(table);
  table.progress = [](kolo_transport* transport, kolo_error*) {
    return count(*transport, "progress");
  };
  table.quiesce = [](kolo_transport* transport) { ++transport->calls["quiesce"]; };
  return table;
}

std::unique_ptr<Transport> make_whole(const kolo_plugin& table) {
  return plugin::make_plugged(
      plugin::checked(&table, "under test"),
      {0, 2, make_local_store(), Clock::now() + std::chrono::seconds(60), 0, 2});
}

int calls_of(const char* call) { return last_made->calls[call]; }

}  // namespace

TEST_CASE("slots, views and answers go through the table, and are counted by kolo") {
  const auto transport = make_whole(whole_table());
  Channel& channel = transport->channel(1);
  CHECK(channel.capabilities().segment_bytes == 256);
  CHECK(channel.capabilities().latency_us == 1.5);
  CHECK(channel.capabilities().straight_segment_bytes == 192);
  CHECK(channel.capabilities().can_answer);
  CHECK(channel.reserve(256) != nullptr);
  channel.commit(kMore);
  CHECK(channel.view(100) != nullptr);
  channel.release();
  CHECK(channel.view_to_answer(50) != nullptr);
  channel.answer();
  CHECK(channel.view_answer(20) != nullptr);
  channel.release_answer();
  CHECK_FALSE(channel.is_drained());
  const ChannelStatistics& counts = channel.statistics();
  CHECK(counts.segments_sent == 1);
  CHECK(counts.bytes_sent == 256 + 50);
  CHECK(counts.segments_received == 2);
  CHECK(counts.bytes_received == 100 + 50 + 20);
  CHECK(counts.system_calls == 7);
  CHECK(counts.connections == 2);
  for (const char* call : {"commit more", "release", "answer", "release_answer"}) {
    INFO(call);
    CHECK(calls_of(call) == 1);
  }
}

TEST_CASE("handles, maps, streams and connections go through the table") {
  const auto transport = make_whole(whole_table());
  Channel& channel = transport->channel(1);
  const MemoryHandle handle = transport->export_memory(&channel, 8);
  CHECK(handle.bytes == std::string("han\0dle", 7));
  CHECK(transport->export_memory(&channel, 0).bytes.empty());
  CHECK(channel.map(handle) != nullptr);
  CHECK(channel.map({"other"}) == nullptr);
  CHECK_FALSE(channel.is_connected());
  CHECK(channel.why_unconnected() == "nobody is at home");
  StreamChannel* const stream = channel.stream();
  REQUIRE(stream != nullptr);
  CHECK(stream->reserve(nullptr, 8) != nullptr);
  stream->commit(nullptr, kPlain);
  CHECK(stream->view(nullptr, 8) != nullptr);
  stream->release(nullptr);
  CHECK(calls_of("stream_commit") == 1);
  CHECK(calls_of("stream_release") == 1);
}

TEST_CASE("what a table leaves out is what a transport of kolo's own leaves out") {
  kolo_plugin table = fake_table("whole");
  add_whole(table);
  const auto transport = make_whole(table);
  Channel& channel = transport->channel(1);
  CHECK_FALSE(channel.capabilities().can_answer);
  CHECK_FALSE(channel.capabilities().can_map);
  CHECK(channel.stream() == nullptr);
  CHECK(channel.is_connected());
  CHECK(transport->descriptor() == -1);
  CHECK_FALSE(transport->arm());
  CHECK(transport->allocate(100) != nullptr);
  CHECK(transport->export_memory(&channel, 8).bytes.empty());
  CHECK_THROWS_AS(channel.view_to_answer(8), std::invalid_argument);
  CHECK_THROWS_AS(channel.send({}, kAnswered), std::invalid_argument);
}

TEST_CASE("numbers that no channel can have are refused when the transport is made") {
  kolo_plugin table = whole_table();
  table.capabilities = [](kolo_channel*, kolo_capabilities* can) { can->segment_bytes = 100; };
  CHECK_THROWS_WITH(make_whole(table), ContainsSubstring("a multiple of 64"));
  table.capabilities = [](kolo_channel*, kolo_capabilities* can) {
    can->segment_bytes = SIZE_MAX / 2 + 1;
  };
  CHECK_THROWS_WITH(make_whole(table), ContainsSubstring(std::string(table.name) + ": ") &&
                                           ContainsSubstring("and is 9223372036854775808"));
  table.capabilities = [](kolo_channel*, kolo_capabilities* can) { can->credit_segments = 3; };
  CHECK_THROWS_WITH(make_whole(table), ContainsSubstring("at least 4"));
}

TEST_CASE("nothing is called after quiesce but destroy") {
  const auto transport = make_whole(whole_table());
  Channel& channel = transport->channel(1);
  StreamChannel* const stream = channel.stream();
  REQUIRE(channel.view(8) != nullptr);
  REQUIRE(channel.reserve(8) != nullptr);
  REQUIRE(channel.view_answer(8) != nullptr);
  transport->quiesce();
  const auto calls_before = last_made->calls;
  CHECK(calls_of("quiesce") == 1);
  transport->quiesce();
  transport->progress();
  CHECK(transport->descriptor() == -1);
  CHECK_FALSE(transport->arm());
  transport->disarm();
  CHECK(transport->allocate(100).get() != last_made->memory.data());
  CHECK(transport->export_memory(&channel, 8).bytes.empty());
  CHECK(channel.is_connected());
  CHECK(channel.why_unconnected().empty());
  static_cast<void>(channel.statistics());
  const auto is_closed = [](const auto& call) {
    try {
      call();
    } catch (const Error& error) {
      return error.code() == ErrorCode::kAborted;
    }
    return false;
  };
  std::byte byte{};
  CHECK(is_closed([&] { channel.reserve(8); }));
  CHECK(is_closed([&] { channel.send({&byte, 1}); }));
  CHECK(is_closed([&] { channel.receive({&byte, 1}); }));
  CHECK(is_closed([&] { channel.view(8); }));
  CHECK(is_closed([&] { channel.is_drained(); }));
  CHECK(is_closed([&] { channel.view_to_answer(8); }));
  CHECK(is_closed([&] { channel.view_answer(8); }));
  CHECK(is_closed([&] { channel.map({"han"}); }));
  CHECK(is_closed([&] { channel.release(); }));
  CHECK(is_closed([&] { channel.commit(); }));
  CHECK(is_closed([&] { channel.answer(); }));
  CHECK(is_closed([&] { channel.release_answer(); }));
  CHECK(is_closed([&] { stream->reserve(nullptr, 8); }));
  CHECK(is_closed([&] { stream->commit(nullptr, kPlain); }));
  CHECK(is_closed([&] { stream->view(nullptr, 8); }));
  CHECK(is_closed([&] { stream->release(nullptr); }));
  CHECK(last_made->calls == calls_before);
}

TEST_CASE("of a plain table, too, nothing is called after quiesce but destroy") {
  kolo_plugin table = fake_table("plain");
  static int calls = 0;  // after quiesce
  table.make = [](const kolo_plugin_request*, kolo_transport** made, kolo_error*) {
    *made = std::make_unique<kolo_transport>().release();
    return KOLO_DONE;
  };
  table.destroy = [](kolo_transport* transport) { std::unique_ptr<kolo_transport>{transport}; };
  table.descriptor = [](kolo_transport*) { return ++calls, 77; };
  table.arm = [](kolo_transport*, kolo_error*) { return ++calls, KOLO_DONE; };
  table.disarm = [](kolo_transport*) { ++calls; };
  table.progress = [](kolo_transport*, kolo_error*) { return ++calls, KOLO_DONE; };
  table.quiesce = [](kolo_transport*) { calls = 0; };
  const auto transport = make_whole(table);
  transport->quiesce();
  transport->progress();
  CHECK(transport->descriptor() == -1);
  CHECK_FALSE(transport->arm());
  transport->disarm();
  transport->quiesce();
  CHECK(calls == 0);
}
