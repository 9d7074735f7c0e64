// Bootstrap of cuda_ipc: the ranks of a job map one another's words and slots.
//
// 1. Each rank creates its own resources: words in a memfd, slots on its device, and a listening
// socket. It publishes its endpoint address in the store (address.h). If a rank cannot, it
// publishes the reason, and all ranks throw.
//
// 2. Each rank connects to every peer's socket, sends its memfd and waits for the answer. Both ends
// stay open, so that each rank notices the end of the other. Other clients of the socket are
// dropped, and the number of silent ones is limited (posix/pending_connections.h). A rank that is
// dropped with them connects again.
//
// 3. Each rank maps the memory of its peers, and reports whether it could.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "transports/cuda/device.h"
#include "transports/cuda/stream_channel.h"
#include "transports/posix/descriptor.h"
#include "transports/posix/shared_memory.h"
#include "transports/registry.h"

namespace kolo::inline v0::cuda {

struct BootstrapSettings {
  int device = 0;
  std::size_t segment_bytes = 0;
  int slots = kMinimumCredit;
  std::string process;  // equal for ranks of one process
  std::shared_ptr<Driver> driver;
};

// Words registered with the device while this object lives.
class RegisteredWords {
 public:
  RegisteredWords(const Device& device, posix::SharedMemory memory);
  ~RegisteredWords() { device_.unregister_host(memory_->bytes().data(), memory_); }
  RegisteredWords(const RegisteredWords&) = delete;
  RegisteredWords& operator=(const RegisteredWords&) = delete;

  Block* block(int rank) const;
  Address address(int rank) const { return address_ + offset(rank); }
  int descriptor() const { return memory_->descriptor(); }

 private:
  static std::size_t offset(int rank) { return static_cast<std::size_t>(rank) * kBlockBytes; }

  const Device& device_;
  const std::shared_ptr<posix::SharedMemory> memory_;
  const Address address_;
};

// Result of the bootstrap. Members are destroyed in the opposite order.
struct BootstrapResult {
  // Frees the slots only if free_slots is true, that is, no peer has them mapped.
  ~BootstrapResult();

  std::unique_ptr<Device> device;
  std::unique_ptr<RegisteredWords> own_words;
  std::byte* own_slots = nullptr;
  bool free_slots = true;

  struct Peer {
    posix::Descriptor passed;  // memfd of its words, until they are mapped
    std::unique_ptr<RegisteredWords> words;
    posix::Descriptor called;    // the socket that this rank connected
    posix::Descriptor accepted;  // the socket that the peer connected: ends with its process
    Link link;
  };
  std::vector<Peer> peers;  // by rank
};

// Collective over the request's ranks. Error RefusedByAll if a rank cannot use cuda_ipc; kMismatch
// if sizes differ; kProtocol if an address cannot be read; kDeadline if a rank is missing. Error
// kUnavailable, on this rank only, if its descriptors run out.
std::unique_ptr<BootstrapResult> meet(const TransportRequest& request,
                                      const BootstrapSettings& settings);

}  // namespace kolo::inline v0::cuda
