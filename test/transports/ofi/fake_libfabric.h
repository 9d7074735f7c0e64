// Fake libfabric under the test's control: it records calls, and no message arrives or completes by
// itself. It has one provider and one endpoint at a time, and takes the soname of libfabric.so.1.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <vector>

namespace kolo::test {

struct FakeFabric {
  struct Receive {
    void* context = nullptr;
    std::span<std::byte> into;
    std::uint64_t tag = 0;
  };
  struct Message {
    std::uint64_t tag = 0;
    std::uint64_t word = 0;
    std::vector<std::byte> data;
  };
  struct Sent {
    void* context = nullptr;           // null: injected
    std::vector<std::byte> data;       // a copy from the time of the send
    const std::byte* place = nullptr;  // the sender's buffer until completion
    std::uint64_t to = 0;
    std::uint64_t tag = 0;
    std::uint64_t word = 0;
    bool has_left = false;
  };
  struct Completion {
    void* context = nullptr;
    int error = 0;
    std::size_t bytes = 0;
    std::uint64_t word = 0;
  };

  // Delivers a message to the first receive of its tag, or to the first one that is posted later. A
  // receive that is too short for the message fails.
  void bring(Message message);
  // Completes a send that was not injected, with an error or 0.
  void finish(std::size_t index, int error);

  std::string provider = "tcp;ofi_rxm";
  std::size_t queue_entries = 64;  // in each direction
  std::size_t inject_bytes = 64;
  int descriptor = -1;  // to wait on; -1: none
  // delivered at the first receive for messages that are no segments
  std::vector<std::uint64_t> early_words;
  int refusals = 0;     // how many injected messages must be retried
  int refuses = 0;      // error of every posted operation, for example FI_EAGAIN
  int queue_error = 0;  // error of the completion queue itself

  std::deque<Receive> receives;
  std::deque<Message> unexpected;
  std::vector<Sent> sent;
  std::deque<Completion> completions;
};

FakeFabric& fake_fabric();

}  // namespace kolo::test
