// Channel over UCX: segments to and from one peer. It is connected at its first use, or when the
// transport is created; see transport.cpp.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "transports/transport.h"
#include "transports/ucx/inbox.h"
#include "transports/ucx/outbox.h"
#include "transports/ucx/shared_state.h"

namespace kolo::inline v0::ucx {

// Per peer: one TCP connection each way, and a liveness socket.
inline constexpr int kDescriptorsPerPeer = 3;

class UcxChannel final : public Channel {
 public:
  UcxChannel(SharedState& station, int peer, std::size_t longest_bytes,
             std::size_t preferred_bytes);

  int peer() const override { return peer_; }
  const Capabilities& capabilities() const override { return capabilities_; }
  const ChannelStatistics& statistics() const override { return statistics_; }

  std::byte* reserve(std::size_t bytes) override;
  void commit(unsigned flags) override;
  bool send(std::span<const std::byte> data, unsigned flags) override;
  bool is_drained() override;

  const std::byte* view(std::size_t bytes) override;
  void release() override;
  bool receive(std::span<std::byte> into, unsigned flags) override;

  // --- for the transport ---

  // Connects if it is not connected yet. Does not wait. A peer that has already ended counts as
  // lost. Error kUnavailable if descriptors are short; the call may be repeated. This error is
  // impossible while ranks connect at the start, since descriptors for all peers are reserved then.
  void connect();

  // Tries again to watch the peer, if the peer's backlog was full.
  void watch_again() {
    if (wants_liveness_) watch();
  }

  // Sends a segment that is held back for the next one.
  void send_held();

  void say_ready() {
    if (!std::exchange(has_said_ready_, true)) outbox_.send_note(Kind::kReady, 0);
  }

  // Sends a goodbye if this rank may leave the peer. The goodbye has left once has_left() is true.
  void say_goodbye();
  bool has_left() const { return flushes_ == 0; }

  // Handles a message; called from UCX's callbacks.
  ucs_status_t accept(Kind kind, const ReadHeader& read, void* data, std::size_t bytes,
                      std::uint64_t attributes) noexcept;

  // Notes that UCX reports the end of the connection. is_broken() is then true until end().
  void note_failure(ucs_status_t status) { broken_ = status; }
  bool is_broken() const { return broken_ != UCS_OK && lost_.empty(); }

  // Handles the peer's farewell: it ended in order.
  void hear(const Farewell& farewell) noexcept;

  // Handles the end of the peer's process, or of the connection if is_broken().
  void end();

  // Farewell of this rank to the peer; nothing if not all segments have left.
  std::optional<Farewell> farewell() const {
    if (!may_part() || !has_left()) return std::nullopt;
    return Farewell{0, 0, outbox_.sent(), inbox_.released()};
  }

  bool is_peer_ready() const { return is_peer_ready_; }
  bool has_endpoint() const { return outbox_.is_connected(); }

  // True if messages sent from now on leave without any help of the peer. False before connect().
  bool is_settled() const { return is_flushed_ && outbox_.has_gone(Kind::kHello); }
  bool has_parted() const { return lost_.empty() && last_.has_value(); }  // in good order
  bool is_over() const { return !lost_.empty() || last_.has_value(); }
  bool has_all_sent() const { return outbox_.is_drained(); }

  // UCX's transports of the connection; empty before connect().
  std::vector<std::string> carriers() const;

  // Every later call throws kAborted.
  void close() noexcept {
    is_closed_ = true;
    inbox_.close();
  }

  // True while UCX works on a request of this channel.
  bool has_requests() const {
    return flushes_ > 0 || outbox_.has_requests() || inbox_.has_requests();
  }

  // Returns held memory to UCX.
  void drop() noexcept { inbox_.drop(); }

  void throw_if_lost() const;

 private:
  void connect_now();
  void watch();
  void part(std::uint32_t sent, std::uint32_t taken) noexcept;
  void flush();
  bool may_part() const { return has_all_sent() && !is_over(); }
  void enqueue(std::span<const std::byte> data, unsigned flags);
  void finish_segment(std::size_t bytes);
  void learn_carriers();
  bool has_all_left();
  bool is_at_end() const { return last_ && inbox_.released() == *last_; }
  void throw_if_closed() const;
  [[noreturn]] void throw_lost(const char* operation) const;
  void throw_if_cannot_send();
  void wait_for_place();
  bool settle(Inbox::Taken taken);
  void lose(const std::string& why);
  std::string way_out() const;

  SharedState& shared_;
  const int peer_;
  Capabilities capabilities_;
  ChannelStatistics statistics_;
  Outbox outbox_;
  Inbox inbox_;
  bool wants_liveness_ = false;
  bool is_closed_ = false;
  bool is_peer_ready_ = false;
  bool is_flushed_ = false;  // since the connection was made
  unsigned flushes_ = 0;     // in flight
  bool has_said_ready_ = false;
  bool knows_carriers_ = false;
  bool may_keep_sent_ = true;  // the carriers: see keep_sent()
  ucs_status_t broken_ = UCS_OK;
  std::string lost_;                   // the reason; empty if the peer is not lost
  std::optional<std::uint32_t> last_;  // number of segments of a peer that ended in order
  std::uint32_t told_ = 0;             // released segments that the peer has been told of
  bool is_reserved_ = false;
  std::size_t reserved_bytes_ = 0;
  bool is_viewing_ = false;
  std::size_t viewed_bytes_ = 0;
};

}  // namespace kolo::inline v0::ucx
