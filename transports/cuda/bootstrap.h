// How the ranks of a job come to see one another's words and slots.
//
// 1. Each makes its own: words in a memfd, slots on its device, a socket to be called at; and
//    publishes a card in the store (card.h). A rank that cannot says why, and all throw.
// 2. Each hands its memfd to every peer over that socket, and waits for the answer. Both ends stay
//    open: one's end is the other's news of its death. Strangers at the socket are dropped, and
//    few of the silent wait there (posix/callers.h); a rank that is swept away with them calls
//    again.
// 3. Each maps what it got, and says whether it could.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "transports/cuda/device.h"
#include "transports/cuda/stream_channel.h"
#include "transports/posix/descriptor.h"
#include "transports/posix/shared_memory.h"
#include "transports/registry.h"

namespace kolo::cuda {

struct BootstrapSettings {
  int device = 0;
  std::size_t segment_bytes = 0;
  int slots = kMinimumCredit;
  std::string process;  // equal for ranks of one process
  std::shared_ptr<Driver> driver;
};

// Words that this process has made visible to the device, until the end.
class RegisteredWords {
 public:
  RegisteredWords(const Device& device, posix::SharedMemory memory);
  ~RegisteredWords() { device_.unregister_host(memory_.bytes().data()); }
  RegisteredWords(const RegisteredWords&) = delete;
  RegisteredWords& operator=(const RegisteredWords&) = delete;

  Block* block(int rank) const;
  Address address(int rank) const { return address_ + offset(rank); }
  int descriptor() const { return memory_.descriptor(); }

 private:
  static std::size_t offset(int rank) { return static_cast<std::size_t>(rank) * kBlockBytes; }

  const Device& device_;
  posix::SharedMemory memory_;
  Address address_;
};

// What a rank has after the meeting. Members end in the opposite order.
struct BootstrapResult {
  // The slots may only go when no peer has them mapped: free_slots says so.
  ~BootstrapResult();

  std::unique_ptr<Device> device;
  std::unique_ptr<RegisteredWords> own_words;
  std::byte* own_slots = nullptr;
  bool free_slots = true;

  struct Peer {
    posix::Descriptor passed;  // of its words, until they are mapped
    std::unique_ptr<RegisteredWords> words;
    posix::Descriptor called;    // the socket that this rank opened
    posix::Descriptor accepted;  // the one that the peer did: closed with its process
    Link link;
  };
  std::vector<Peer> peers;  // by rank
};

// Collective over the request's ranks. RefusedByAll where one of them cannot;
// kMismatch where they were told different sizes; kProtocol where a rank's card cannot be read;
// kDeadline where one does not come. kUnavailable, on this rank, where its descriptors run out.
std::unique_ptr<BootstrapResult> meet(const TransportRequest& request,
                                      const BootstrapSettings& settings);

}  // namespace kolo::cuda
