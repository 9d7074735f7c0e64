// Received segments of one peer that are not taken yet, in the order of their numbers.
//
// A segment arrives whole (eager), or as an offer (rendezvous) that is fetched once its destination
// is known. If the last segment was taken with view(), the next offers are fetched at once into
// memory of the inbox. If it was taken with receive(), long offers wait for the caller's memory;
// short ones are fetched at once, so that ranks which all send first do not block one another.
// ranks that all send first go on then, as they do where the network holds as much.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "transports/base/aligned_memory.h"
#include "transports/ucx/liveness.h"
#include "transports/ucx/outbox.h"

namespace kolo::inline v0::ucx {

class Inbox {
 public:
  Inbox(Worker& worker, const HostLiveness& liveness, int peer, std::size_t segment_bytes);

  // Handles a segment; returns the status for UCX's callback. A number outside the window, a
  // repeated number, or a segment that is too long is a fault.
  ucs_status_t accept(std::uint32_t number, const void* data, std::size_t bytes,
                      std::uint64_t attributes);

  enum class Taken { kNotYet, kYes, kFailed };

  // Takes the next segment in place: data() is valid after kYes. After kFailed, failure() tells the
  // reason. A segment shorter than `bytes` is padded with zeros, and of a longer one only the
  // beginning is used: a mismatch of calls shows in the data that the ranks read.
  Taken view(std::size_t bytes);

  const std::byte* data() const { return next().data; }
  void release();

  // Receives the next segment into `into`. Call it again with the same memory until the result is
  // not kNotYet.
  Taken receive(std::span<std::byte> into);

  // The peer ended in order after `end` segments: so fetched data are valid.
  void believe(std::uint32_t end);

  // True if all segments before `end` have arrived.
  bool has_all(std::uint32_t end) const;

  // True if view() or receive() can proceed with the next segment.
  bool has_next() const {
    return next().state != State::kEmpty && next().state != State::kFetching;
  }

  // The caller's memory is no longer available as a destination.
  void forget_place() { place_ = {}; }

  // As forget_place(), and no further offers are fetched.
  void close() {
    is_closed_ = true;
    place_ = {};
  }

  // True while UCX is fetching.
  bool has_requests() const;

  // Returns held memory to UCX. Call before the worker is closed.
  void drop() noexcept;

  std::uint32_t released() const { return taken_; }
  bool is_faulty() const { return is_faulty_; }
  ucs_status_t failure() const { return failure_; }

 private:
  enum class State {
    kEmpty,
    kOffered,   // by UCX's rendezvous
    kFetching,  // by UCX's rendezvous
    kDoubtful,  // fetched, but the peer may have freed that memory before
    kDropped,   // there was no memory to keep it
    kWhole,     // at data
    kPlaced     // in the caller's memory
  };
  struct Arrival {
    State state = State::kEmpty;
    const std::byte* data = nullptr;
    std::size_t bytes = 0;
    void* held = nullptr;    // owned by UCX: an offer, or data in UCX's memory
    bool is_direct = false;  // fetched into the caller's memory
    AlignedMemory own;
    Inbox* inbox = nullptr;
  };

  Arrival& next() { return arrivals_[taken_ % kWindow]; }
  const Arrival& next() const { return arrivals_[taken_ % kWindow]; }
  std::byte* own_memory(Arrival& arrival);
  bool has_memory(Arrival& arrival) noexcept;
  void lengthen(Arrival& arrival, std::size_t bytes);
  void fetch(Arrival& arrival, std::byte* into);
  void fetched(Arrival& arrival, ucs_status_t status);
  static void trust(Arrival& arrival) {
    arrival.state = arrival.is_direct ? State::kPlaced : State::kWhole;
  }
  static void fetch_is_done(void* request, ucs_status_t status, std::size_t bytes, void* arrival);

  Worker& worker_;
  const HostLiveness& liveness_;
  const int peer_;
  const std::size_t segment_bytes_;
  std::array<Arrival, kWindow> arrivals_;
  std::uint32_t taken_ = 0;
  bool takes_views_ = false;
  std::span<std::byte> place_;  // of the caller, for the next segment; empty: none
  std::optional<std::uint32_t> end_;
  bool is_closed_ = false;
  bool is_faulty_ = false;
  ucs_status_t failure_ = UCS_OK;
};

}  // namespace kolo::inline v0::ucx
