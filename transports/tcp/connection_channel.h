// One connection as a channel.
//
// Whatever is queued leaves in one system call: gathered from where it lies, or, where it is short,
// from a copy in one piece, which the kernel takes faster. What is received is read straight to
// where it shall lie, and in the same system call up to kAheadBytes of what follows into a small
// buffer, which the next segments are served from first. What is short is read by way of that
// buffer, as far as it fills: a header with up to 8 KiB behind it costs one call.
//
// Who connects goes on with data right behind its hello, so a rank can send its last segments and
// end before its peer has looked up. Where both of a pair have connected before they heard of each
// other, the lower rank's connection stays. The higher rank closes its own, whose bytes are on
// their way all the same, goes on where it stopped on the lower rank's, and says so in its hello
// there; the lower rank reads the closed one to its end first. So no byte is sent twice or
// overtakes another.
//
// Between hosts even the end of one connection may come before the beginning of the other. So who
// ends, and has not yet said hello on the connection that the peer opened, says it then, with the
// same flag: the peer waits for the other connection. Where it opened one, sent data, and that ends
// without a hello, it gives the other some time before it takes the peer for lost.
#pragma once

#include <array>

#include "transports/tcp/channel.h"

namespace kolo::tcp {

// Two rooms to read into cost the kernel 0.2 us more than one, and to gather two pieces 0.24 us: as
// much as copies of some KiB. One call in the place of two saves 0.4 us: all-reduce of 8 KiB took
// 8.4 us with 4 KiB ahead, and 7.4 with 9, of 512 B 6.0 and 5.5; with 16, 32 KiB took 2 % longer.
inline constexpr std::size_t kAheadBytes = 4096;          // behind what goes where it shall lie
inline constexpr std::size_t kShortBytes = 512;           // received by way of what is ahead,
inline constexpr std::size_t kLongAheadBytes = 9 * 1024;  // of which there is more then
inline constexpr std::size_t kCopiedBytes = 9 * 1024;     // sent in one piece

class ConnectionChannel final : public TcpChannel {
 public:
  using TcpChannel::TcpChannel;

  bool send_copy(std::span<const std::byte> data, unsigned flags) override;
  bool is_connected() const override { return socket_.is_open() || is_dead(); }
  bool is_settled() const override;
  bool take(posix::Descriptor& socket, const Hello* theirs, std::uint32_t lane) override;
  bool say_goodbye() override;

 protected:
  void push() override;
  bool pull(std::byte* into, std::size_t bytes) override;
  void close_sockets() noexcept override;
  bool is_more_announced() const override { return awaits_earlier_ && !has_earlier_; }

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
  bool is_plain_ = false;    // socket_ is all there is to read from

  // The higher rank's connection, where both have connected; only on the lower rank.
  posix::Descriptor earlier_;
  bool has_earlier_ = false;     // or had, and has read it to its end
  bool awaits_earlier_ = false;  // the other connection, as the peer's hello on socket_ says

  HelloReader reply_;
  std::array<std::byte, kHelloBytes> hello_{};  // to be said on socket_ before anything else
  std::size_t unsaid_ = 0;                      // of its bytes
  bool follows_another_ = false;                // as it says
  bool has_sent_data_ = false;                  // on socket_
  bool has_said_goodbye_ = false;

  std::size_t filled_ = 0;  // of the segment under way, wherever it goes
  std::array<std::byte, kLongAheadBytes> ahead_;
  std::size_t ahead_begin_ = 0;
  std::size_t ahead_end_ = 0;
};

}  // namespace kolo::tcp
