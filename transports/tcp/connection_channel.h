// Channel over one TCP connection.
//
// The whole queue is sent in one system call. Long data is gathered from its place; short data is
// copied into one buffer first, which the kernel takes faster. A segment is received directly at
// its destination. The same system call reads up to kAheadBytes of the following data into a small
// buffer, which serves the next segments first. Short segments are read through that buffer: a
// header with up to 8 KiB behind it costs one call.
//
// The connecting rank sends data right behind its hello. So it can send its last segments and end
// before its peer reacts. If both ranks of a pair connect at the same time, the lower rank's
// connection stays. The higher rank closes its own connection; the kernel still delivers its bytes.
// It continues on the lower rank's connection, and its hello there carries the flag
// follows_another. The lower rank reads the closed connection to its end first. So no byte is sent
// twice or overtakes another.
//
// Between hosts, the end of one connection may arrive before the start of the other. So before a
// rank ends, it sends a hello that is still missing on the connection opened by the peer, with the
// same flag; the peer then waits for the other connection. If a rank's own connection ends without
// a hello after it sent data, it waits for a limited time before it reports the peer as lost.
#pragma once

#include <array>
#include <vector>

#include "transports/tcp/channel.h"

namespace kolo::inline v0::tcp {

// Reading into two buffers costs 0.2 us more than into one, and gathering two pieces 0.24 us: as
// much as copying a few KiB. One call instead of two saves 0.4 us. With 9 KiB ahead instead of 4,
// an all_reduce of 8 KiB took 7.4 us instead of 8.4, and of 512 B 5.5 us instead of 6.0. With 16
// KiB ahead, 32 KiB took 2 % longer.
inline constexpr std::size_t kAheadBytes = 4096;          // read ahead behind a long segment
inline constexpr std::size_t kShortBytes = 512;           // received through the ahead buffer,
inline constexpr std::size_t kLongAheadBytes = 9 * 1024;  // which then reads up to this length
inline constexpr std::size_t kCopiedBytes = 9 * 1024;     // sent from one buffer up to this length

class ConnectionChannel final : public TcpChannel {
 public:
  using TcpChannel::TcpChannel;

  bool send_copy(std::span<const std::byte> data, unsigned flags) override;
  bool is_connected() const override { return socket_.is_open() || is_dead(); }
  std::string remote_address() const override;
  bool is_settled() const override;
  bool take(posix::Descriptor& socket, const Hello* theirs, std::uint32_t lane) override;
  bool say_goodbye() override;

 protected:
  void push() override;
  bool pull(std::byte* into, std::size_t bytes) override;
  void close_sockets() noexcept override;
  bool is_more_announced() const override { return awaits_earlier_ && !has_earlier_; }
  bool has_heard_peer() const override { return !has_called_ || is_heard_ || has_earlier_; }
  bool is_unacknowledged() const override { return posix::is_unacknowledged(socket_); }

 private:
  void speak(bool follows_another);
  void pop_sent(std::size_t bytes);
  bool is_untried() const;
  void take_ahead(std::byte* into, std::size_t bytes);
  void receive_more(std::byte* into, std::size_t bytes);
  ssize_t receive_straight(const posix::Descriptor& from, std::byte* into, std::size_t bytes);
  const posix::Descriptor* source();
  bool hear();
  void end_unheard(int error);
  bool tries_again();
  void count_connections();

  posix::Descriptor socket_;
  bool has_called_ = false;  // this rank opened socket_
  bool is_heard_ = false;    // the peer's hello on socket_ has been read
  bool is_plain_ = false;    // all further data comes from socket_

  // The higher rank's connection if both have connected; used only on the lower rank.
  posix::Descriptor earlier_;
  bool has_earlier_ = false;     // earlier_ has arrived; it may have been read to its end since
  bool awaits_earlier_ = false;  // the peer's hello on socket_ has announced earlier_

  HelloReader reply_;
  std::array<std::byte, kHelloBytes> hello_{};  // sent on socket_ before all data
  std::size_t unsaid_ = 0;                      // bytes of hello_ to send
  bool follows_another_ = false;                // flag in hello_
  bool has_sent_data_ = false;                  // on socket_
  bool has_said_goodbye_ = false;

  std::size_t filled_ = 0;        // bytes of the current segment at its destination
  std::vector<std::byte> ahead_;  // empty until there is a connection: most pairs never have one
  std::size_t ahead_begin_ = 0;
  std::size_t ahead_end_ = 0;
};

}  // namespace kolo::inline v0::tcp
