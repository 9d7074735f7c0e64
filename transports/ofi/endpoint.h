// Reliable-datagram endpoint of libfabric, with its domain, completion queue and address table.
//
// No call blocks. If an operation cannot be posted now, try again after poll(). With
// manual-progress providers, progress is made only inside these calls.
#pragma once

#include <rdma/fi_tagged.h>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "transports/ofi/fids.h"
#include "transports/ofi/library.h"

namespace kolo::inline v0::ofi {

struct Operation;

// Receiver of completions.
class Owner {
 public:
  // `bytes` and `word` (the immediate data) of a receive; both are 0 for a send.
  virtual void done(Operation& operation, std::size_t bytes, std::uint64_t word) = 0;
  virtual void failed(Operation& operation, const std::string& why) = 0;

 protected:
  ~Owner() = default;
};

// Context of one posted operation. Its address must stay the same until the operation is done.
struct Operation {
  fi_context2 context{};  // the provider's; must come first, so that both have the same address
  Owner* owner = nullptr;
  std::uint64_t number = 0;  // for the owner's use
  bool is_receive = false;
  bool is_under_way = false;  // a receive that is posted and not completed
};

enum class Posted { kYes, kNotNow, kNever };  // kNever: why() tells the reason

class Endpoint {
 public:
  // Opens an endpoint for `operations` operations at a time. If can_sleep, with a descriptor to
  // sleep on, where the provider has one. Error kUnavailable with the provider's reason.
  Endpoint(Info info, std::size_t operations, bool can_sleep);
  ~Endpoint() { close(); }
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  // The endpoint's address, in the provider's format.
  std::string name() const;

  // Enters the addresses of all ranks, by rank. Error kProtocol with the rank of an invalid
  // address.
  void know(const std::vector<std::string>& names);

  Posted send(int peer, std::span<const std::byte> data, std::uint64_t tag, std::uint64_t word,
              Operation& operation);
  // Sends at most inject_bytes(). The memory is free at once, and there is no completion.
  Posted inject(int peer, std::span<const std::byte> data, std::uint64_t tag, std::uint64_t word);
  // Posts a receive for a message with this tag, from any peer.
  Posted receive(std::span<std::byte> into, std::uint64_t tag, Operation& operation);
  // Asks to cancel a posted receive. poll() reaps it without a call to the owner. A message that
  // has begun to arrive is still received.
  void cancel(Operation& operation);
  // Number of posted receives.
  std::size_t receives() const { return receives_; }
  // Reason of the last Posted::kNever.
  const std::string& why() const { return why_; }

  // Calls the owners of completed operations. Error kSystem if the completion queue itself has
  // failed.
  void poll();

  // Number of completed operations, successful or not. It grows with each completion.
  std::uint64_t done() const { return done_; }

  std::size_t inject_bytes() const { return info_->tx_attr->inject_size; }
  std::size_t most_bytes() const { return info_->ep_attr->max_msg_size; }
  std::size_t sends_at_once() const { return info_->tx_attr->size; }
  std::size_t receives_at_once() const { return info_->rx_attr->size; }
  std::string_view provider() const { return info_->fabric_attr->prov_name; }

  // Readable when poll() has something to do, if is_quiet() was true before; -1 if the provider has
  // no descriptor.
  int descriptor() const { return descriptor_; }
  // True if a thread may sleep: poll() has seen all completions.
  bool is_quiet();

  // Closes everything. Afterwards the provider touches no memory.
  void close() noexcept { fids_.close(); }
  // Hands the open resources over to the caller, which closes them.
  Fids give_up() noexcept { return std::move(fids_); }
  bool is_open() const { return fids_.endpoint != nullptr; }

 private:
  void open_queue(std::size_t operations, bool can_sleep);
  void require(long result, const char* what) const;
  Posted outcome(long result);
  void poll_error();
  void over(Operation& operation);

  Info info_;
  Fids fids_;
  int descriptor_ = -1;
  std::string why_;
  std::uint64_t done_ = 0;
  std::size_t receives_ = 0;
};

}  // namespace kolo::inline v0::ofi
