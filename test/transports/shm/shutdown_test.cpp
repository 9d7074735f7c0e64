// Failures of shm ranks, and that nothing is left behind.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "test/support/catch.h"
#include "test/support/temporary_folder.h"
#include "test/transports/shm/ranks.h"
#include "transports/error.h"
#include "transports/posix/unix_socket.h"

using namespace kolo;
using namespace kolo::test;

namespace {

std::set<std::string> names_in(const char* folder) {
  std::set<std::string> names;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error))
    names.insert(entry.path().filename());
  return names;
}

// Only files of kolo: those of other programs may change at any time.
std::set<std::string> shared_memory_files() {
  std::set<std::string> names = names_in("/dev/shm");
  std::erase_if(names, [](const std::string& name) { return name.find("kolo") == name.npos; });
  return names;
}

std::size_t open_descriptors() { return names_in("/proc/self/fd").size(); }

// Rank 1 as a process that sends one segment and then nothing more.
pid_t fork_silent_rank(const std::string& store_path) {
  const pid_t child = ::fork();
  if (child != 0) return child;
  try {
    const auto transport = make_shm(request_for(1, 2, open_file_store(store_path, 2, soon())));
    const std::uint64_t here = 1;
    transport->channel(0).send(std::as_bytes(std::span(&here, 1)));
    while (true) ::pause();
  } catch (...) {
    ::_exit(1);
  }
}

bool says(const Error& error, const char* text) {
  return std::string(error.what()).find(text) != std::string::npos;
}

void wait_for_segment(Transport& transport, int peer, Wait wait) {
  std::uint64_t value = 0;
  wait_until(
      transport,
      [&] { return transport.channel(peer).receive(std::as_writable_bytes(std::span(&value, 1))); },
      "a segment", wait);
}

}  // namespace

TEST_CASE("a killed peer is reported, to a spinning and to a sleeping rank") {
  const Wait wait = GENERATE(Wait::kSpin, Wait::kSleep);
  const TemporaryFolder folder;
  const auto before = shared_memory_files();
  const auto descriptors = open_descriptors();
  const pid_t child = fork_silent_rank(folder / "store");
  REQUIRE(child > 0);
  {
    const auto transport =
        make_shm(request_for(0, 2, open_file_store(folder / "store", 2, soon())));
    wait_for_segment(*transport, 1, wait);
    std::thread killer([child] { ::kill(child, SIGKILL); });
    const Error error = error_of([&] { wait_for_segment(*transport, 1, wait); });
    killer.join();
    CHECK(error.code() == ErrorCode::kPeerLost);
    CHECK(error.peer() == 1);
    CHECK_THAT(error.what(),
               ContainsSubstring("rank 1 (process " + std::to_string(child) + ") is gone"));
    CHECK(error_of([&] { transport->channel(1).reserve(8); }).code() == ErrorCode::kPeerLost);
    CHECK(error_of([&] { transport->channel(1).view(8); }).code() == ErrorCode::kPeerLost);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(shared_memory_files() == before);
  CHECK(open_descriptors() == descriptors);
}

TEST_CASE("data sent before a rank's end can still be read, and then its end is an error") {
  const Wait wait = GENERATE(Wait::kSpin, Wait::kSleep);
  std::promise<void> has_closed;
  auto closed = has_closed.get_future();
  run_ranks(2, [&](int rank, const std::shared_ptr<Store>& store) {
    auto transport = make_shm(request_for(rank, 2, store));
    if (rank == 1) {
      for (std::uint64_t value = 0; value < 4; ++value) {
        expect(transport->channel(0).send(std::as_bytes(std::span(&value, 1))));
      }
      transport.reset();
      has_closed.set_value();
      return;
    }
    closed.wait();
    for (int i = 0; i < 100'000; ++i) transport->progress();  // long enough to check the socket
    for (int i = 0; i < 4; ++i) wait_for_segment(*transport, 1, wait);
    const Error error = error_of([&] { wait_for_segment(*transport, 1, wait); });
    expect(error.code() == ErrorCode::kPeerLost);
    expect(error.peer() == 1);
    expect(says(error, "has closed its shm channel"));
  });
}

TEST_CASE("shm leaves no descriptor and no file behind") {
  const auto files = shared_memory_files();
  const auto descriptors = open_descriptors();
  run_connected(4, [](Transport&) {});
  expect(open_descriptors() == descriptors);
  expect(shared_memory_files() == files);
}

TEST_CASE("every call fails after quiesce, and at the peer once all data is read") {
  run_connected(2, [](Transport& transport) {
    Channel& channel = transport.channel(1 - transport.rank());
    if (transport.rank() == 0) {
      transport.quiesce();
      expect(error_of([&] { channel.reserve(8); }).code() == ErrorCode::kAborted);
      expect(error_of([&] { channel.view(8); }).code() == ErrorCode::kAborted);
    } else {
      expect(error_of([&] { wait_for_segment(transport, 0, Wait::kSleep); }).code() ==
             ErrorCode::kPeerLost);
    }
  });
}

TEST_CASE("unknown clients neither join nor disturb the ranks") {
  const auto store = make_local_store();
  std::thread higher([store] {
    const auto transport = make_shm(request_for(1, 2, store));
    wait_for_segment(*transport, 0, Wait::kSpin);
  });
  // shm/address.cpp has the words of an address; the socket is the seventh.
  const std::string address = store->get("address/1", soon());
  std::istringstream words(address);
  std::string name;
  for (int i = 0; i < 7; ++i) words >> name;
  const auto silent = posix::connect_unix(name);
  const auto rude = posix::connect_unix(name);
  expect(silent.has_value());
  expect(rude.has_value());
  const std::array<std::byte, 48> garbage{};
  expect(posix::send_message(rude->get(), garbage));
  static_cast<void>(posix::connect_unix(name));  // disconnects at once
  const auto transport = make_shm(request_for(0, 2, store));
  const std::uint64_t value = 7;
  expect(transport->channel(1).send(std::as_bytes(std::span(&value, 1))));
  higher.join();
}

TEST_CASE("a missing rank is reported within the deadline") {
  auto request = request_for(0, 3, make_local_store());
  request.deadline = Clock::now() + std::chrono::milliseconds(50);
  const Error error = error_of([&] { make_shm(request); });
  expect(error.code() == ErrorCode::kDeadline);
  expect(says(error, "ranks 1, 2"));
}

TEST_CASE("ranks with different segment sizes all get an error") {
  run_ranks(2, [](int rank, const std::shared_ptr<Store>& store) {
    const ShmSettings settings{rank == 0 ? std::size_t{4096} : std::size_t{8192}, true};
    const Error error = error_of([&] { make_shm(request_for(rank, 2, store), settings); });
    expect(error.code() == ErrorCode::kProtocol);
    expect(says(error, "4096") && says(error, "8192"));
  });
}

TEST_CASE("a segment of an unexpected length is an error") {
  const std::size_t sent = GENERATE(std::size_t{8}, std::size_t{4000});
  run_connected(2, [sent](Transport& transport) {
    Channel& channel = transport.channel(1 - transport.rank());
    const std::vector<std::byte> data(sent);
    expect(channel.send(data));
    const Error error = error_of([&] {
      wait_until(
          transport, [&] { return channel.view(24) != nullptr; }, "a segment of 24 bytes");
    });
    expect(error.code() == ErrorCode::kProtocol);
    expect(error.peer() == 1 - transport.rank());
  });
}

TEST_CASE("a wrong call throws at once") {
  run_connected(2, [](Transport& transport) {
    Channel& channel = transport.channel(1 - transport.rank());
    expect_bug([&] { transport.channel(transport.rank()); });
    expect_bug([&] { channel.commit(); });
    expect_bug([&] { channel.release(); });
    expect_bug([&] { channel.release_answer(); });
    expect_bug([&] { channel.reserve(channel.capabilities().segment_bytes + 1); });
    expect(channel.reserve(8) != nullptr);
    expect_bug([&] { channel.reserve(8); });
  });
}
