// Zero copy: the peer accesses the memory directly. Nothing is accessed after the end.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

#include "test/support/catch.h"
#include "test/transports/shm/ranks.h"
#include "transports/error.h"
#include "transports/posix/shared_memory.h"
#include "transports/registry.h"
#include "transports/rendezvous.h"

using namespace kolo;
using namespace kolo::test;

namespace {

constexpr std::size_t kBytes = 32 * 1024;

bool is_filled(const std::byte* data, std::size_t bytes, std::byte with) {
  return std::all_of(data, data + bytes, [with](std::byte byte) { return byte == with; });
}

// Progress counter that keeps the two threads of a test in step.
class Step {
 public:
  void reach(int step) { step_.store(step, std::memory_order_release); }
  void await(int step) const {
    const auto patience = soon();
    while (step_.load(std::memory_order_acquire) < step) {
      if (Clock::now() > patience) throw std::runtime_error("the other rank did not go on");
      std::this_thread::yield();
    }
  }

 private:
  std::atomic<int> step_{0};
};

ErrorCode code_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.code();
  }
  throw std::runtime_error("no error was thrown");
}

std::byte* wait_for_question(Transport& transport, int peer) {
  std::byte* segment = nullptr;
  wait_until(
      transport,
      [&] { return (segment = transport.channel(peer).view_to_answer(kBytes)) != nullptr; },
      "a question");
  return segment;
}

}  // namespace

TEST_CASE("a segment sent from allocated memory is read in place, and in use until its release") {
  Step step;
  run_connected(2, [&](Transport& transport) {
    Channel& channel = transport.channel(1 - transport.rank());
    if (transport.rank() == 0) {
      const auto memory = transport.allocate(kBytes);
      expect(channel.send({memory.get(), kBytes}));
      expect(!channel.is_drained());
      std::memset(memory.get(), 7, kBytes);  // forbidden to users; here it proves zero copy
      step.reach(1);
      wait_until(
          transport, [&] { return channel.is_drained(); }, "a release");
    } else {
      step.await(1);
      const std::byte* segment = nullptr;
      wait_until(
          transport, [&] { return (segment = channel.view(kBytes)) != nullptr; }, "a segment");
      expect(is_filled(segment, kBytes, std::byte{7}));
      channel.release();
    }
  });
}

TEST_CASE("the answer to a lent segment is in the segment's own memory") {
  run_connected(2, [&](Transport& transport) {
    Channel& channel = transport.channel(1 - transport.rank());
    if (transport.rank() == 0) {
      const auto memory = transport.allocate(kBytes);
      expect(channel.send({memory.get(), kBytes}, kAnswered | kLent));
      const std::byte* answer = nullptr;
      wait_until(
          transport, [&] { return (answer = channel.view_answer(kBytes)) != nullptr; },
          "an answer");
      expect(answer == memory.get() && is_filled(answer, kBytes, std::byte{9}));
      channel.release_answer();
    } else {
      std::memset(wait_for_question(transport, 0), 9, kBytes);
      channel.answer();
    }
  });
}

// After the answer is out, the answering rank wakes a sleeping owner by a system call. Meanwhile
// the owner has time to take the answer and to end.
TEST_CASE("a rank that has its answer may end while the peer still wakes it") {
  for (int round = 0; round < 50; ++round) {
    run_connected(2, [&](Transport& transport) {
      Channel& channel = transport.channel(1 - transport.rank());
      if (transport.rank() == 0) {
        const auto memory = transport.allocate(kBytes);
        expect(channel.send({memory.get(), kBytes}, kAnswered | kLent));
        const bool is_there = channel.view_answer(kBytes) != nullptr;
        if (!is_there) transport.arm();
        wait_until(
            transport, [&] { return channel.view_answer(kBytes) != nullptr; }, "an answer");
        channel.release_answer();
        transport.quiesce();
      } else {
        wait_for_question(transport, 0);
        channel.answer();
      }
    });
  }
}

TEST_CASE("no peer writes to lent memory after the end") {
  Step owner;
  Step peer;
  run_connected(2, [&](Transport& transport) {
    if (transport.rank() == 0) {
      const auto memory = transport.allocate(3 * kBytes);
      std::memset(memory.get(), 1, 3 * kBytes);
      expect(transport.channel(1).send({memory.get() + kBytes, kBytes}, kAnswered | kLent));
      peer.await(1);
      transport.quiesce();
      owner.reach(1);
      peer.await(2);
      expect(is_filled(memory.get(), 3 * kBytes, std::byte{1}));
      memory[kBytes] = std::byte{2};  // the owner may still use it
    } else {
      std::byte* const segment = wait_for_question(transport, 0);
      peer.reach(1);
      owner.await(1);
      std::memset(segment, 9, kBytes);
      peer.reach(2);
      expect(code_of([&] { transport.channel(0).answer(); }) == ErrorCode::kPeerLost);
    }
  });
}

// An error that unwinds the memory's owner before its transport does this.
TEST_CASE("lent memory may be freed before the end") {
  Step owner;
  Step peer;
  run_connected(2, [&](Transport& transport) {
    if (transport.rank() == 0) {
      auto memory = transport.allocate(kBytes);
      expect(transport.channel(1).send({memory.get(), kBytes}, kAnswered | kLent));
      peer.await(1);
      memory.reset();
      transport.quiesce();
      owner.reach(1);
    } else {
      std::byte* const segment = wait_for_question(transport, 0);
      peer.reach(1);
      owner.await(1);
      std::memset(segment, 9, kBytes);
      expect(code_of([&] { transport.channel(0).answer(); }) == ErrorCode::kPeerLost);
    }
  });
}

TEST_CASE("a reader of offered memory learns that the owner has ended") {
  Step owner;
  Step peer;
  run_connected(2, [&](Transport& transport) {
    if (transport.rank() == 0) {
      const auto memory = transport.allocate(kBytes);
      expect(transport.channel(1).send({memory.get(), kBytes}));
      peer.await(1);
      transport.quiesce();
      owner.reach(1);
    } else {
      const std::byte* segment = nullptr;
      wait_until(
          transport, [&] { return (segment = transport.channel(0).view(kBytes)) != nullptr; },
          "a segment");
      peer.reach(1);
      owner.await(1);
      expect(code_of([&] { transport.channel(0).release(); }) == ErrorCode::kPeerLost);
    }
  });
}

TEST_CASE("memory that its owner frees while a peer reads it is an error, not a crash") {
  Step owner;
  Step peer;
  run_connected(2, [&](Transport& transport) {
    if (transport.rank() == 0) {
      auto memory = transport.allocate(kBytes);
      const auto other = transport.allocate(kBytes);
      expect(transport.channel(1).send({memory.get(), kBytes}));
      peer.await(1);
      memory.reset();
      expect(transport.channel(1).send({other.get(), kBytes}));
      owner.reach(1);
      peer.await(2);
    } else {
      const std::byte* segment = nullptr;
      wait_until(
          transport, [&] { return (segment = transport.channel(0).view(kBytes)) != nullptr; },
          "a segment");
      peer.reach(1);
      owner.await(1);
      const auto code = code_of([&] {
        wait_until(
            transport, [] { return false; }, "that the memory is gone");
      });
      peer.reach(2);
      expect(code == ErrorCode::kProtocol);
    }
  });
}

TEST_CASE("the kernel's copy from plain memory is rejected after the owner's end") {
  std::vector<std::byte> memory(kBytes);
  Step owner;
  run_connected(2, [&](Transport& transport) {
    constexpr int kSegments = 8;  // the first of them do not use slots
    if (transport.rank() == 0) {
      for (int i = 0; i < kSegments; ++i) {
        transport.channel(1).send(memory, kReceived);
      }
      const bool is_offered = !transport.channel(1).is_drained();
      transport.quiesce();
      owner.reach(is_offered ? 2 : 1);
    } else {
      owner.await(1);
      std::vector<std::byte> into(kBytes);
      const auto code = code_of([&] {
        for (int i = 0; i <= kSegments; ++i) {
          wait_until(
              transport, [&] { return transport.channel(0).receive(into); }, "a segment");
        }
      });
      expect(code == ErrorCode::kPeerLost);
    }
  });
}

namespace {

void expect_private_pages() {
  posix::SharedMemory memory(5 * 4096, posix::Pages::kPresent);
  const auto bytes = memory.bytes();
  std::memset(bytes.data(), 3, bytes.size());
  const posix::SharedMemory peer(posix::Descriptor(dup(memory.descriptor())), bytes.size());
  REQUIRE(posix::make_private(bytes.subspan(4000, 200)));
  CHECK(is_filled(bytes.data(), bytes.size(), std::byte{3}));
  std::memset(peer.bytes().data(), 4, bytes.size());
  CHECK(is_filled(bytes.data(), 2 * 4096, std::byte{3}));
  CHECK(is_filled(bytes.data() + 2 * 4096, 3 * 4096, std::byte{4}));
}

}  // namespace

TEST_CASE("private pages keep their bytes, and peers keep the old ones") { expect_private_pages(); }

// UCX 1.13 replaces the C library's mremap by its own, which cannot move a mapping to a new
// address.
TEST_CASE("pages become private also if a library intercepts the process's memory mappings") {
  for (const std::string_view name : transport_names()) {
    INFO(name);
    TransportRequest request;
    request.store = make_local_store();
    request.deadline = soon();
    try {
      const auto transport = make_transport(name, request);
      expect_private_pages();
    } catch (const Error& error) {
      REQUIRE(error.code() == ErrorCode::kUnavailable);
    }
  }
}
