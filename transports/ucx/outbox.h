// Messages to one peer: numbered segments, as many as the peer has given credit for, and control
// messages.
//
// Each segment in flight has a place: its header and, if it was committed, its slot. UCX needs both
// until the send is complete. Sends may complete out of order.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "transports/base/aligned_memory.h"
#include "transports/ucx/worker.h"

namespace kolo::inline v0::ucx {

// Segments in flight each way between a pair. One more than the minimum would be enough for credit
// that returns two at a time; twice as many keep a stream flowing.
inline constexpr std::uint32_t kWindow = 16;

// A credit message is sent after so many releases, if no segment goes to the peer. So the peer
// always has at least kMinimumCredit of its credit.
inline constexpr std::uint32_t kTellAfter = 8;
static_assert(kWindow - (kTellAfter - 1) >= static_cast<std::uint32_t>(kMinimumCredit));

class Outbox {
 public:
  // Every header carries `token` and `rank` of the sender.
  Outbox(Worker& worker, std::uint32_t token, int rank, std::size_t segment_bytes);

  void connect(ucp_ep_h endpoint) { endpoint_ = endpoint; }
  bool is_connected() const { return endpoint_ != nullptr; }

  // From now on segments up to this size are sent eagerly.
  void send_eagerly(std::size_t bytes) { eager_bytes_ = bytes; }
  ucp_ep_h endpoint() const { return endpoint_; }

  // True if the next segment can be sent.
  bool has_place() const {
    return distance(credited_, sent_) < kWindow && !places_[sent_ % kWindow].is_busy;
  }

  // Slot of the next segment.
  std::byte* slot();

  // Sends `data` as the next segment. `data` must stay unchanged until is_drained().
  void send_segment(std::span<const std::byte> data, std::uint32_t released);

  // Holds the next segment (1 to kMostBefore bytes) back for the header of the one that follows.
  // Copies `data`.
  void hold(std::span<const std::byte> data);
  bool has_room_behind() const { return distance(credited_, sent_) + 1 < kWindow; }
  bool is_holding() const { return held_bytes_ > 0; }
  void send_held(std::uint32_t released);
  void drop_held() { held_bytes_ = 0; }

  // Sends a message without data, with the number of segments sent so far. Kinds other than kCredit
  // are sent once at a time.
  void send_note(Kind kind, std::uint32_t released);

  // Sends a message without data (as credit). Its completion shows that all segments before it have
  // left UCX: over TCP UCX buffers one message to a peer, and takes the next one only when that one
  // has left. One probe is in flight at a time.
  void send_probe(std::uint32_t released);

  // True if all segments are known to have left UCX.
  bool has_all_left() const { return left_ == sent_; }
  void believe_all_left() { left_ = sent_; }

  // Handles the peer's count of released segments. Ignores an outdated count.
  void give_credit(std::uint32_t released);

  std::uint32_t sent() const { return sent_; }  // segments

  bool is_all_taken() const { return credited_ == sent_; }  // as reported by the peer

  // True if UCX needs none of the sent memory any more, and no segment is held back.
  bool is_drained() const { return under_way_ == 0 && held_bytes_ == 0; }
  bool has_requests() const { return under_way_ > 0; }

  bool has_gone(Kind note) const { return !notes_[static_cast<std::size_t>(note)].is_busy; }

  // UCX's error of a send; UCS_OK if there was none.
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
  // More credit messages than this are never in flight: the peer cannot have sent that many
  // segments.
  std::array<PendingMessage, kWindow / kTellAfter + 1> credits_;
  std::uint32_t credits_sent_ = 0;
  std::array<PendingMessage, kKinds> notes_;  // of the other kinds
  std::uint32_t sent_ = 0;
  std::size_t held_bytes_ = 0;  // of the last segment, stored behind its header
  std::uint32_t credited_ = 0;  // segments that the peer has released, as it reported
  unsigned under_way_ = 0;
  ucs_status_t failure_ = UCS_OK;
  std::uint32_t left_ = 0;    // segments known to have left UCX
  std::uint32_t probed_ = 0;  // segments sent before the probe
  PendingMessage probe_;
};

}  // namespace kolo::inline v0::ucx
