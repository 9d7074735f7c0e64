// A libfabric that does what the test says: calls are recorded, and nothing comes or leaves by
// itself. It has one provider, and stands in libfabric.so.1's place (its soname). One endpoint at a
// time.
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
    std::vector<std::byte> data;       // as it was then
    const std::byte* place = nullptr;  // where it lies until it has left
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

  // What somebody sends: into the first receive of this tag, or the first that is posted later. One
  // that is too short for it fails.
  void bring(Message message);
  // Of what was sent, and not injected: it has left, or why not.
  void finish(std::size_t index, int error);

  std::string provider = "tcp;ofi_rxm";
  std::size_t queue_entries = 64;  // of either direction
  std::size_t inject_bytes = 64;
  int descriptor = -1;                     // to sleep on; -1: none
  std::vector<std::uint64_t> early_words;  // that come with the first receive for messages of all
  int refusals = 0;                        // so often what is injected is to be tried again
  int refuses = 0;                         // what is posted: an error, FI_EAGAIN among them
  int queue_error = 0;                     // of the completion queue itself

  std::deque<Receive> receives;
  std::deque<Message> unexpected;
  std::vector<Sent> sent;
  std::deque<Completion> completions;
};

FakeFabric& fake_fabric();

}  // namespace kolo::test
