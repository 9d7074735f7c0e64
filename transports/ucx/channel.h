// Segments to and from one peer. It is connected when it is first used, or when the transport is
// made; see ucx.cpp.
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

namespace kolo::ucx {

// Of each peer a connection of tcp's each way, and a lifeline.
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

  // Does nothing where it is done. Nothing is waited for; who is gone already is lost. Error
  // kUnavailable, after which it may be tried again, where descriptors are short, but while ranks
  // meet: then all of them have been promised some.
  void connect();

  // Another try where the peer's lifeline had no room.
  void watch_again() {
    if (wants_lifeline_) watch();
  }

  // What waits for another segment waits no longer.
  void send_held();

  void say_ready() {
    if (!std::exchange(has_said_ready_, true)) outbox_.send_note(Kind::kReady, 0);
  }

  // Where this rank may part from the peer: it then does once has_left().
  void say_goodbye();
  bool has_left() const { return flushes_ == 0; }

  // What UCX has brought, from its callbacks.
  ucs_status_t accept(Kind kind, const ReadHeader& read, void* data, std::size_t bytes,
                      std::uint64_t attributes) noexcept;

  // UCX tells of the connection's end; is_broken() from then on until end().
  void note_failure(ucs_status_t status) { broken_ = status; }
  bool is_broken() const { return broken_ != UCS_OK && lost_.empty(); }

  // The peer is done, as it says itself.
  void hear(const Farewell& farewell) noexcept;

  // The peer's process has ended, or, where it is broken, UCX says that the connection has.
  void end();

  // What this rank says in the end; nothing where not all that it sent has gone.
  std::optional<Farewell> farewell() const {
    if (!may_part() || !has_left()) return std::nullopt;
    return Farewell{0, 0, outbox_.sent(), inbox_.released()};
  }

  bool is_peer_ready() const { return is_peer_ready_; }
  bool has_endpoint() const { return outbox_.is_connected(); }

  // What is sent from now on leaves without any help of the peer's. False also before connect().
  bool is_settled() const { return is_flushed_ && outbox_.has_gone(Kind::kHello); }
  bool has_parted() const { return lost_.empty() && last_.has_value(); }  // in good order
  bool is_over() const { return !lost_.empty() || last_.has_value(); }
  bool has_all_sent() const { return outbox_.is_drained(); }

  // UCX's transports that carry the connection; empty before connect().
  std::vector<std::string> carriers() const;

  // Every later call throws kAborted.
  void close() noexcept {
    is_closed_ = true;
    inbox_.close();
  }

  // Whether UCX still does something for it.
  bool has_requests() const {
    return flushes_ > 0 || outbox_.has_requests() || inbox_.has_requests();
  }

  // Gives back to UCX what it has here.
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
  bool wants_lifeline_ = false;
  bool is_closed_ = false;
  bool is_peer_ready_ = false;
  bool is_flushed_ = false;  // since it was connected
  unsigned flushes_ = 0;     // under way
  bool has_said_ready_ = false;
  bool knows_carriers_ = false;
  bool may_keep_sent_ = true;  // they
  ucs_status_t broken_ = UCS_OK;
  std::string lost_;                   // why, if it is
  std::optional<std::uint32_t> last_;  // the peer is done after so many segments
  std::uint32_t told_ = 0;             // of the credit that is the peer's due
  bool is_reserved_ = false;
  std::size_t reserved_bytes_ = 0;
  bool is_viewing_ = false;
  std::size_t viewed_bytes_ = 0;
};

}  // namespace kolo::ucx
