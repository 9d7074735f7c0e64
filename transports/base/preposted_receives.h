// What a channel may be besides: one that wants to know how the segments to come will be taken.
//
// Where a long segment costs a question to the peer and its answer, whoever receives had better ask
// for several at once. That needs their places beforehand, which only the owner knows. Channels
// that have no use for it are none of these, and nobody has to say anything: a dynamic_cast of the
// Channel tells.
#pragma once

#include <cstddef>
#include <span>

namespace kolo {

class PrepostedReceives {
 public:
  // Segments after the one that is due of which it pays to tell.
  virtual std::size_t expected_segments() const = 0;

  // The `ahead`-th segment after the one that is due (0: that one) will be received into `into`,
  // which the transport may write from then on, or viewed where that points nowhere. They are told
  // of in their order, after those that are being asked for. False: not now, or to no use. Where
  // it is true it is a promise, and may be repeated. Errors: as of Channel::receive.
  virtual bool expect(std::size_t ahead, std::span<std::byte> into) = 0;

 protected:
  ~PrepostedReceives() = default;
};

}  // namespace kolo
