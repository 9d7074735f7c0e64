// Optional interface of a channel that posts receives before segments arrive.
//
// If a long segment costs a round trip to the peer, a receiver should request several at once. It
// needs their destinations in advance, which only the channel's owner knows. Find out by a
// dynamic_cast of the Channel; other channels need no announcements.
#pragma once

#include <cstddef>
#include <span>

namespace kolo::inline v0 {

class PrepostedReceives {
 public:
  // Number of segments after the next one that are worth announcing.
  virtual std::size_t expected_segments() const = 0;

  // Announces that the `ahead`-th segment after the next one (0: the next one) will be received
  // into `into`, which the transport may write from then on. A null span: it will be viewed.
  // Announce in order, after the segments already requested. False: not now, or no benefit. After
  // true the announcement is binding; it may be repeated. Errors: as Channel::receive.
  virtual bool expect(std::size_t ahead, std::span<std::byte> into) = 0;

 protected:
  ~PrepostedReceives() = default;
};

}  // namespace kolo::inline v0
