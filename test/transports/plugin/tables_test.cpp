// Plugin tables: invalid tables and their errors, and how the status and error of plugin functions
// become kolo errors.
#include <cstddef>
#include <cstring>
#include <thread>

#include "test/support/catch.h"
#include "test/transports/plugin/fake_table.h"
#include "transports/error.h"
#include "transports/plugin/load.h"
#include "transports/plugin/registration.h"
#include "transports/plugin/transport.h"

using namespace kolo;
using namespace kolo::test;
using Catch::Matchers::StartsWith;

namespace {

std::string complaint(const kolo_plugin& table) {
  try {
    plugin::checked(&table, "under test");
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

TransportRequest request_of(int rank, int size, std::shared_ptr<Store> store) {
  return {rank, size, std::move(store), Clock::now() + std::chrono::seconds(60), 0, size};
}

// The error with which a transport of this table cannot be made, for rank 0 alone.
Error error_of_make(const kolo_plugin& table, std::shared_ptr<Store> store = make_local_store(),
                    int size = 1) {
  try {
    plugin::make_plugged(plugin::checked(&table, "under test"),
                         request_of(0, size, std::move(store)));
  } catch (const Error& error) {
    return error;
  }
  throw std::runtime_error("nothing was thrown");
}

kolo_status fail_as(kolo_error* error, int code, int peer, const char* text) {
  error->code = code;
  error->peer = peer;
  std::strncpy(error->text, text, sizeof error->text - 1);
  return KOLO_FAILED;
}

kolo_status make_nothing(const kolo_plugin_request*, kolo_transport** made, kolo_error*) {
  static int something = 0;
  *made = reinterpret_cast<kolo_transport*>(&something);
  return KOLO_DONE;
}

}  // namespace

TEST_CASE("the error for a table of another version gives both versions and a remedy") {
  kolo_plugin table = fake_table("played");
  table.version = KOLO_PLUGIN_VERSION + 1;
  CHECK(complaint(table) ==
        "the transport under test: its table is of version 3, and this kolo speaks version 2: "
        "build it again with the transports/plugin.h of this kolo's installation");
}

TEST_CASE("the error for missing functions names them, but no optional ones") {
  kolo_plugin table = fake_table("played");
  CHECK(complaint(table).empty());
  table.make = nullptr;
  table.receive = nullptr;
  CHECK_THAT(complaint(table), ContainsSubstring("its table lacks make, receive:"));
  table = fake_table("played");
  table.completed = nullptr;
  CHECK_THAT(complaint(table), ContainsSubstring("its table lacks completed:"));
  table = fake_table("played");
  table.arm = [](kolo_transport*, kolo_error*) { return KOLO_DONE; };
  CHECK_THAT(complaint(table), ContainsSubstring("its table lacks descriptor, disarm:"));
}

TEST_CASE("a table is not read beyond its size") {
  kolo_plugin table = fake_table("played");
  table.arm = [](kolo_transport*, kolo_error*) { return KOLO_DONE; };
  table.size = offsetof(kolo_plugin, arm);
  CHECK_THAT(complaint(table), ContainsSubstring("its table lacks send, receive, completed"));
  table.size = 8;
  CHECK_THAT(complaint(table), ContainsSubstring("set size to sizeof(kolo_plugin)"));
  // A later table of the same version is longer and begins with the current one.
  struct Longer {
    kolo_plugin table;
    void* more[4];
  } longer{fake_table("played"), {}};
  longer.table.size = sizeof longer;
  CHECK(complaint(longer.table).empty());
}

TEST_CASE("a name that no setting can contain and an unknown reach are refused") {
  for (const char* name : {"", "two words", "a/b", "a,b", "a?b"})
    CHECK_THAT(complaint(fake_table(name)), ContainsSubstring("its name is not one word"));
  kolo_plugin table = fake_table("played");
  table.name = nullptr;
  CHECK_THAT(complaint(table), ContainsSubstring("its name is not one word"));
  table = fake_table("played");
  table.reach = 7;
  CHECK_THAT(complaint(table), ContainsSubstring("its reach is 7"));
}

TEST_CASE("a registered transport is available by its name in this process") {
  const kolo_plugin table = fake_table("registered");
  CHECK_FALSE(is_from_outside("registered"));
  register_transport(table);
  register_transport(table);  // registering the same table again is allowed
  CHECK(is_from_outside("registered"));
  CHECK(is_from_outside("registered?lanes=2"));
  CHECK(resolve_transport("registered") == "registered");
  CHECK(joins_processes("registered"));
  kolo_plugin other = table;
  other.make = make_nothing;
  CHECK_THROWS_WITH(register_transport(other), "another transport is registered as registered");
  CHECK_THROWS_WITH(register_transport(fake_table("auto")),
                    StartsWith("a transport of kolo's own is called auto"));
  const std::string built_in(transport_names().front());
  CHECK_THROWS_AS(register_transport(fake_table(built_in.c_str())), std::invalid_argument);
}

TEST_CASE("a plugin's error becomes an error with rank, peer and transport") {
  kolo_plugin table = fake_table("played");
  table.make = [](const kolo_plugin_request*, kolo_transport**, kolo_error* error) {
    return fail_as(error, KOLO_PEER_LOST, 3, "it has hung up");
  };
  const Error lost = error_of_make(table);
  CHECK(lost.code() == ErrorCode::kPeerLost);
  CHECK(lost.peer() == 3);
  CHECK(std::string(lost.what()) == "rank 0: played lost rank 3: it has hung up");
  table.make = [](const kolo_plugin_request*, kolo_transport**, kolo_error* error) {
    return fail_as(error, 99, -1, "");
  };
  const Error unknown = error_of_make(table);
  CHECK(unknown.code() == ErrorCode::kSystem);
  CHECK(unknown.peer() == kNoPeer);
  CHECK(std::string(unknown.what()) == "rank 0: played: the transport gave no reason");
  table.make = [](const kolo_plugin_request*, kolo_transport**, kolo_error* error) {
    std::memset(error->text, 'x', sizeof error->text);  // without a terminating zero
    return KOLO_FAILED;
  };
  CHECK_THAT(error_of_make(table).what(), ContainsSubstring("played: xxx"));
  table.make = [](const kolo_plugin_request*, kolo_transport**, kolo_error* error) {
    return fail_as(error, KOLO_SYSTEM, -1, "one\ntwo\x01\x1b[31m\xff");
  };
  CHECK(std::string(error_of_make(table).what()) == "rank 0: played: one two??[31m?");
}

TEST_CASE("a transport that is unusable here or has too short a reach gives the reason") {
  kolo_plugin table = fake_table("played");
  table.why_unusable = [] { return "no such card"; };
  const Error unusable = error_of_make(table);
  CHECK(unusable.code() == ErrorCode::kUnavailable);
  CHECK(std::string(unusable.what()) == "rank 0: played cannot be used here: no such card");
  table.why_unusable = [] { return "no\nsuch\x1b card"; };
  CHECK(std::string(error_of_make(table).what()) ==
        "rank 0: played cannot be used here: no such? card");
  table = fake_table("played");
  table.reach = KOLO_PROCESS;
  const auto store = make_local_store();
  std::thread elsewhere([&store] {
    TransportRequest request = request_of(1, 2, store);
    request.host_id = "another";
    try {
      kolo_plugin same = fake_table("played");
      same.reach = KOLO_HOST;
      plugin::make_plugged(plugin::checked(&same, "under test"), request);
    } catch (const Error&) {
    }
  });
  const Error far = error_of_make(table, store, 2);
  elsewhere.join();
  CHECK(far.code() == ErrorCode::kUnavailable);
  CHECK_THAT(far.what(),
             ContainsSubstring("played connects only the threads of one process, and these 2 "
                               "ranks are farther apart"));
}

TEST_CASE("an invalid status and a count of unsent segments are errors, not endless waits") {
  kolo_plugin table = fake_table("played");
  table.make = make_nothing;
  table.send = [](kolo_channel*, const void*, std::size_t, kolo_error*) { return KOLO_DONE; };
  const auto complaint_of = [&table](const auto& act) {
    const auto transport = plugin::make_plugged(plugin::checked(&table, "under test"),
                                                request_of(0, 2, make_local_store()));
    try {
      act(transport->channel(1));
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::kProtocol);
      return std::string(error.what());
    }
    return std::string();
  };
  const auto send_one = [](Channel& channel) {
    const std::byte data{};
    channel.send({&data, 1});
    channel.is_drained();
  };
  CHECK(complaint_of(send_one).empty());
  table.completed = [](kolo_channel*, std::uint64_t* messages, kolo_error*) {
    *messages = 3;
    return KOLO_DONE;
  };
  CHECK_THAT(complaint_of(send_one), StartsWith("rank 0: played: completed() returned 3 messages, "
                                                "but 0 were accepted, and 0 returned before"));
  table.receive = [](kolo_channel*, void*, std::size_t, kolo_error*) {
    const volatile int none = 77;  // enumerations of C hold any number
    return static_cast<kolo_status>(none);
  };
  table.completed = fake_table("played").completed;
  const auto receive_one = [](Channel& channel) {
    std::byte into{};
    channel.receive({&into, 1});
  };
  CHECK_THAT(complaint_of(receive_one),
             StartsWith("rank 0: played: a function of its table returned 77"));
}

TEST_CASE("a make function without a transport and a missing channel are errors of the plugin") {
  kolo_plugin table = fake_table("played");
  table.make = [](const kolo_plugin_request*, kolo_transport**, kolo_error*) { return KOLO_DONE; };
  const auto make = [&table](int size) {
    return plugin::make_plugged(plugin::checked(&table, "under test"),
                                request_of(0, size, make_local_store()));
  };
  CHECK_THROWS_AS(make(1), std::invalid_argument);
  table.make = make_nothing;
  CHECK(make(2)->size() == 2);
  table.segment_bytes = [](kolo_transport*) { return SIZE_MAX / 2 + 1; };
  CHECK_THROWS_WITH(make(2), StartsWith("played: a transport's segment_bytes must be"));
  table.segment_bytes = nullptr;
  table.channel = [](kolo_transport*, int) { return static_cast<kolo_channel*>(nullptr); };
  CHECK_THROWS_WITH(make(2), "a transport must have a channel to each of its peers");
}

TEST_CASE("a plugin transport gets its ranks, options, deadline and store") {
  kolo_plugin table = fake_table("asks");
  table.make = [](const kolo_plugin_request* request, kolo_transport** made, kolo_error* error) {
    const kolo_store* const store = request->store;
    char value[4] = {};
    std::size_t bytes = 0;
    if (request->size != sizeof *request || request->rank != 0 || request->ranks != 1 ||
        request->segment_bytes != 256 || std::strcmp(request->options, "lanes=2") != 0)
      return fail_as(error, KOLO_MISMATCH, -1, "not what was asked for");
    if (store->try_get(store, "key", value, 4, &bytes, error) != KOLO_NOT_NOW)
      return fail_as(error, KOLO_MISMATCH, -1, "a key from nowhere");
    if (store->set(store, "key", "a\0cdef", 6, error) != KOLO_DONE) return KOLO_FAILED;
    if (store->get(store, "key", request->deadline_ns, value, 4, &bytes, error) != KOLO_DONE)
      return KOLO_FAILED;
    if (bytes != 6 || std::memcmp(value, "a\0cd", 4) != 0)
      return fail_as(error, KOLO_MISMATCH, -1, "another value");
    if (store->get(store, "nothing", 1, value, 4, &bytes, error) != KOLO_FAILED ||
        error->code != KOLO_DEADLINE)
      return fail_as(error, KOLO_MISMATCH, -1, "no deadline");
    if (store->check(store, error) != KOLO_DONE) return KOLO_FAILED;
    return make_nothing(request, made, error);
  };
  register_transport(table);
  TransportRequest request = request_of(0, 1, make_local_store());
  request.segment_bytes = 256;
  CHECK(make_transport("asks?lanes=2", request)->name() == "asks");
}

TEST_CASE("ranks with different options for a transport get an error before it is made") {
  kolo_plugin table = fake_table("optional");
  table.make = make_nothing;
  register_transport(table);
  const auto store = make_local_store();
  const auto complaint_of = [&store](int rank, const char* name) -> std::string {
    try {
      make_transport(name, request_of(rank, 2, store));
    } catch (const Error& error) {
      return error.code() == ErrorCode::kMismatch ? error.what() : "";
    }
    return "";
  };
  std::string theirs;
  std::thread other([&] { theirs = complaint_of(1, "optional?lanes=3"); });
  const std::string mine = complaint_of(0, "optional?lanes=2");
  other.join();
  CHECK(mine == theirs);
  CHECK(mine ==
        "rank 0 asked for transport optional?lanes=2, rank 1 for optional?lanes=3: ask for the "
        "same on every rank");
}

TEST_CASE("ranks whose values differ in length get an error, and a failed job ends a wait") {
  kolo_plugin table = fake_table("played");
  table.make = [](const kolo_plugin_request* request, kolo_transport**, kolo_error* error) {
    char all[16];
    return request->store->gather(request->store, "address", "abc", 3, request->deadline_ns, "meet",
                                  all, error);
  };
  auto store = make_local_store();
  store->set("address/1", "too long");
  const Error differs = error_of_make(table, store, 2);
  CHECK(differs.code() == ErrorCode::kMismatch);
  CHECK(differs.peer() == 1);
  CHECK_THAT(differs.what(), StartsWith("rank 0: rank 1 gave 8 bytes as 'address', this rank 3"));
  store = make_local_store();
  store->post_failure("rank 1: out of luck");
  const Error failed = error_of_make(table, store, 2);
  CHECK(failed.code() == ErrorCode::kAborted);
  CHECK_THAT(failed.what(), ContainsSubstring("rank 1: out of luck"));
}
