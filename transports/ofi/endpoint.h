// One reliable-datagram endpoint, with its domain, completion queue and addresses.
//
// Nothing blocks. What cannot be posted now is to be tried again after poll(). With providers whose
// progress is manual all that happens, happens within these calls.
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

namespace kolo::ofi {

struct Operation;

// Who is told how an operation went.
class Owner {
 public:
  // `bytes` and the immediate data of what was received; 0 of what was sent.
  virtual void done(Operation& operation, std::size_t bytes, std::uint64_t word) = 0;
  virtual void failed(Operation& operation, const std::string& why) = 0;

 protected:
  ~Owner() = default;
};

// What the provider knows an operation by: it stays where it is until it is done.
struct Operation {
  fi_context2 context{};  // the provider's own; first, for the address of both is the same
  Owner* owner = nullptr;
  std::uint64_t number = 0;  // its owner's
  bool is_receive = false;
  bool is_under_way = false;  // a receive that is posted, and has not come
};

enum class Posted { kYes, kNotNow, kNever };  // kNever: why() says what is wrong

class Endpoint {
 public:
  // Opens all of it, for `operations` at a time, and with a descriptor to sleep on, where that is
  // wanted and the provider has one. Error kUnavailable with the provider's reason.
  Endpoint(Info info, std::size_t operations, bool can_sleep);
  ~Endpoint() { close(); }
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  // Its address, as the provider has it.
  std::string name() const;

  // Those of all ranks, by rank. Error kProtocol with the rank whose is none.
  void know(const std::vector<std::string>& names);

  Posted send(int peer, std::span<const std::byte> data, std::uint64_t tag, std::uint64_t word,
              Operation& operation);
  // Of at most inject_bytes(): the memory is free at once, and nobody is told.
  Posted inject(int peer, std::span<const std::byte> data, std::uint64_t tag, std::uint64_t word);
  // What has this tag, from whomever.
  Posted receive(std::span<std::byte> into, std::uint64_t tag, Operation& operation);
  // Asks for the end of a receive that is under way. poll() sees it, and tells nobody; what has
  // begun to come comes nevertheless.
  void cancel(Operation& operation);
  // Those that are under way.
  std::size_t receives() const { return receives_; }
  // Why the last one was refused for ever.
  const std::string& why() const { return why_; }

  // Tells owners what is done. Error kSystem where the queue itself has failed.
  void poll();

  // How many operations are done, well or not: who keeps the number sees when there is another.
  std::uint64_t done() const { return done_; }

  std::size_t inject_bytes() const { return info_->tx_attr->inject_size; }
  std::size_t most_bytes() const { return info_->ep_attr->max_msg_size; }
  std::size_t sends_at_once() const { return info_->tx_attr->size; }
  std::size_t receives_at_once() const { return info_->rx_attr->size; }
  std::string_view provider() const { return info_->fabric_attr->prov_name; }

  // Readable when poll() has something to do, once is_quiet(); -1 where the provider has none.
  int descriptor() const { return descriptor_; }
  // Whether one may sleep: nothing has come that poll() has not seen.
  bool is_quiet();

  // Nothing of this endpoint's touches any memory any more.
  void close() noexcept { fids_.close(); }
  // The same, for who closes it otherwise.
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

}  // namespace kolo::ofi
