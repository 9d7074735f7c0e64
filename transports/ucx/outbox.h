// What a rank sends to one peer: segments with their numbers, as many as the peer has given credit
// for, and messages that are no segments.
//
// Each segment under way has a place: its header and, if it was committed, its slot. UCX wants both
// until the send is complete; sends may complete in another order than that they were made in.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "transports/base/aligned_memory.h"
#include "transports/ucx/worker.h"

namespace kolo::ucx {

// Segments in flight each way, of a pair. One more than the minimum would be enough for credit that
// comes back by twos; twice as many keep a stream going.
inline constexpr std::uint32_t kWindow = 16;

// Where nothing else goes to the peer credit is told after so many releases: the peer then never
// has less than kMinimumCredit of what is its due.
inline constexpr std::uint32_t kTellAfter = 8;
static_assert(kWindow - (kTellAfter - 1) >= static_cast<std::uint32_t>(kMinimumCredit));

class Outbox {
 public:
  // Headers say `token` and `rank`, who is who sends.
  Outbox(Worker& worker, std::uint32_t token, int rank, std::size_t segment_bytes);

  void connect(ucp_ep_h endpoint) { endpoint_ = endpoint; }
  bool is_connected() const { return endpoint_ != nullptr; }

  // From now on segments of up to so many bytes are sent without asking the peer first.
  void send_eagerly(std::size_t bytes) { eager_bytes_ = bytes; }
  ucp_ep_h endpoint() const { return endpoint_; }

  // Whether the next segment may leave.
  bool has_place() const {
    return distance(credited_, sent_) < kWindow && !places_[sent_ % kWindow].is_busy;
  }

  // The slot of the next segment.
  std::byte* slot();

  // Sends `data` as the next segment; it stays as it is until is_drained().
  void send_segment(std::span<const std::byte> data, std::uint32_t released);

  // The next segment, of 1 to kMostBefore bytes, which may wait for the one that follows. The
  // memory is not needed any more.
  void hold(std::span<const std::byte> data);
  bool has_room_behind() const { return distance(credited_, sent_) + 1 < kWindow; }
  bool is_holding() const { return held_bytes_ > 0; }
  void send_held(std::uint32_t released);
  void drop_held() { held_bytes_ = 0; }

  // Sends a message of a header only, with the number of segments sent so far. Of all but
  // credit there is one.
  void send_note(Kind kind, std::uint32_t released);

  // Sends a message of a header only (as of credit) which, when it is complete, says that all
  // segments before it have left UCX: over tcp UCX keeps one message to a peer, and takes none
  // before that has left. One is under way at a time.
  void send_probe(std::uint32_t released);

  // Whether all that was sent is known to have left UCX.
  bool has_all_left() const { return left_ == sent_; }
  void believe_all_left() { left_ = sent_; }

  // The peer says how many segments it has released so far; an older word than the last is ignored.
  void give_credit(std::uint32_t released);

  std::uint32_t sent() const { return sent_; }  // segments

  bool is_all_taken() const { return credited_ == sent_; }  // by the peer, as it said

  // Nothing that was given to UCX is needed any more, and nothing is held.
  bool is_drained() const { return under_way_ == 0 && held_bytes_ == 0; }
  bool has_requests() const { return under_way_ > 0; }

  bool has_gone(Kind note) const { return !notes_[static_cast<std::size_t>(note)].is_busy; }

  // Why UCX could not send something; UCS_OK: it could.
  ucs_status_t failure() const { return failure_; }

 private:
  struct PendingMessage {
    std::array<std::byte, kHeaderBytes + kMostBefore> header;
    std::size_t header_bytes = kHeaderBytes;
    Outbox* outbox = nullptr;
    bool is_busy = false;
  };
  struct Place : PendingMessage {
    AlignedMemory slot;
  };

  static void write(PendingMessage& letter, const Header& header) {
    std::memcpy(letter.header.data(), &header, kHeaderBytes);
    letter.header_bytes = kHeaderBytes;
  }
  Place& place(std::uint32_t number) { return places_[number % kWindow]; }
  void post(Kind kind, PendingMessage& letter, std::span<const std::byte> data);
  void complete(PendingMessage& letter, ucs_status_t status);
  static void sent(void* request, ucs_status_t status, void* letter);

  Worker& worker_;
  Header stamped(std::uint32_t number, std::uint32_t released) const {
    return {token_, rank_, number, released};
  }

  const std::uint32_t token_;
  const std::uint32_t rank_;
  const std::size_t segment_bytes_;
  ucp_ep_h endpoint_ = nullptr;
  std::size_t eager_bytes_ = 0;
  std::array<Place, kWindow> places_;
  // More credit than a window's is never under way: the peer cannot have sent what it would be for.
  std::array<PendingMessage, kWindow / kTellAfter + 1> credits_;
  std::uint32_t credits_sent_ = 0;
  std::array<PendingMessage, kKinds> notes_;  // the others
  std::uint32_t sent_ = 0;
  std::size_t held_bytes_ = 0;  // of the last one, which lies behind its header
  std::uint32_t credited_ = 0;  // segments of mine that the peer has released, as it said
  unsigned under_way_ = 0;
  ucs_status_t failure_ = UCS_OK;
  std::uint32_t left_ = 0;    // segments that have left UCX, as far as is known
  std::uint32_t probed_ = 0;  // segments before the probe
  PendingMessage probe_;
};

}  // namespace kolo::ucx
