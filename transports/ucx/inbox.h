// What has come from one peer and is not taken yet, in the order of its numbers.
//
// A segment arrives whole, or as an offer that is fetched when it is known where to. Where the last
// segment was taken with view(), the next offers are fetched at once, into memory of the inbox's;
// where it was taken with receive(), they wait for the caller's memory, unless they are short:
// ranks that all send first go on then, as they do where the network holds as much.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "transports/base/aligned_memory.h"
#include "transports/ucx/liveness.h"
#include "transports/ucx/outbox.h"

namespace kolo::ucx {

class Inbox {
 public:
  Inbox(Worker& worker, const HostLiveness& lifelines, int peer, std::size_t segment_bytes);

  // For UCX's callback of a segment: what it is to return. A segment that nobody sends (its number
  // is not in the window, or there already; it is too long) is a fault.
  ucs_status_t accept(std::uint32_t number, const void* data, std::size_t bytes,
                      std::uint64_t attributes);

  enum class Taken { kNotYet, kYes, kFailed };

  // The next segment, where it lies: data() once this says yes. kFailed: failure() says why. One
  // that is shorter than was asked for ends in zeros, of a longer one the beginning is there: ranks
  // that call different things find out by what they read.
  Taken view(std::size_t bytes);

  const std::byte* data() const { return next().data; }
  void release();

  // The next segment into `into`; asked again with the same until it says something else than not
  // yet.
  Taken receive(std::span<std::byte> into);

  // The peer was done in good order, after `end` segments: what was fetched is what it sent.
  void believe(std::uint32_t end);

  // Whether all segments before `end` are there, or have been.
  bool has_all(std::uint32_t end) const;

  // Whether view() or receive() gets on with the next segment.
  bool has_next() const {
    return next().state != State::kEmpty && next().state != State::kFetching;
  }

  // The caller's memory is not waited with any more.
  void forget_place() { place_ = {}; }

  // Nor is anything else fetched: what is under way is the last.
  void close() {
    is_closed_ = true;
    place_ = {};
  }

  // Whether UCX is fetching.
  bool has_requests() const;

  // Gives back to UCX what it holds here; before the worker is closed.
  void drop() noexcept;

  std::uint32_t released() const { return taken_; }
  bool is_faulty() const { return is_faulty_; }
  ucs_status_t failure() const { return failure_; }

 private:
  enum class State {
    kEmpty,
    kOffered,   // by UCX's rendezvous
    kFetching,  // from there
    kDoubtful,  // fetched from a peer that may have given up its memory before
    kWhole,     // at data
    kPlaced     // in the caller's memory
  };
  struct Arrival {
    State state = State::kEmpty;
    const std::byte* data = nullptr;
    std::size_t bytes = 0;
    void* held = nullptr;    // of UCX's: an offer, or data that lie there
    bool is_direct = false;  // is fetched into the caller's memory
    AlignedMemory own;
    Inbox* inbox = nullptr;
  };

  Arrival& next() { return arrivals_[taken_ % kWindow]; }
  const Arrival& next() const { return arrivals_[taken_ % kWindow]; }
  std::byte* own_memory(Arrival& arrival);
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
  std::span<std::byte> place_;  // the caller's, for the next segment; empty: none
  std::optional<std::uint32_t> end_;
  bool is_closed_ = false;
  bool is_faulty_ = false;
  ucs_status_t failure_ = UCS_OK;
};

}  // namespace kolo::ucx
