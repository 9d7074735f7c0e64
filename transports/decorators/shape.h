// The shaping decorator: what would this be over another network?
//
// Any transport seems to have a rate, a delay and a jitter. In a text, as KOLO_SHAPE and the
// programs' --shape take it:
//
//   1Gbit,1ms                            every rank has a wire of 1 Gb/s each way; 1 ms to another
//   100Mbit,20ms,jitter=2ms,seed=7       and each segment up to 2 ms more, drawn from the seed
//   10Gbit,burst=256KiB                  a token bucket that saves up 256 KiB
//   hosts:1Gbit,1ms                      between hosts only (KOLO_HOST_ID makes several of one)
//   1Gbit,1ms+0-1:off+2to3:10Mbit        not between 0 and 1; a wire of its own from 2 to 3
//
// Rates are Kbit, Mbit, Gbit, or KB, MB, GB per second, all decimal; times ns, us, ms, s. A rule
// for a pair replaces the first rule for that pair; the last one that fits holds. Every rank must
// be told the same.
//
// The model. A segment leaves over its rank's outgoing wire, in the order in which segments were
// sent, whatever their channel; is under way for delay + jitter; and comes in over the incoming
// wire of its receiver, which all its peers share (so a parameter server's wire is the bottleneck
// that it is on a real network). Wires are token buckets and cut through: where
// one flow has both wires to itself it pays for one. Order on a channel is kept. There is no loss
// and no congestion control: a flow that is alone has the full rate at once.
//
// How. The sender computes when a segment will have come across and sends it at once, with these
// times before it (32 bytes, not counted in statistics); the receiver takes it over into memory of
// its own and shows it when its time has come. So nobody holds a timer for others, a rank that is
// late in looking delays only itself, and the pipe stays full at any delay. A sender that is more
// than 10 ms (or 4 segments) ahead of its wire is told "not now". Times are those of the machine's
// monotonic clock; where two ranks do not share it, the delay counts from when the receiver took
// the segment over.
//
// Costs: a copy of each segment at either end, about 0.3 us, and memory: per channel and direction
// up to the bytes that fit on the wire, rate x (delay + jitter + 20 ms), but at least 8 segments
// of the length that is best below, or 4 of those that are sent, at the receiver, and as much again
// at the sender of a receiver that does not look. 1 Gb/s and 50 ms: 8.8 MB.
//
// A shaped channel is a network: it takes no answers and maps no memory, whatever lies below.
// Channels of pairs that are not shaped are those of the transport below, untouched.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "../transport.h"

namespace kolo {

// The way from one rank to another.
struct ShapedPath {
  bool is_shaped = false;
  bool is_own_wire = false;            // not the wires of its ranks
  std::uint64_t bytes_per_second = 0;  // 0: no limit
  std::uint64_t burst_bytes = 0;
  std::chrono::nanoseconds delay{0};
  std::chrono::nanoseconds jitter{0};
};

struct Shape {
  struct Override {
    int from = 0;
    int to = 0;
    ShapedPath path;
  };

  std::string text;  // without blanks; what the transport's name ends with
  ShapedPath all;
  bool is_between_hosts_only = false;
  std::vector<Override> overrides;
  std::uint64_t seed = 1;  // of the jitter

  // `hosts`: by rank, as in Topology; empty: all on one.
  ShapedPath path(int from, int to, const std::vector<int>& hosts) const;
};

// std::invalid_argument that says which word of `text` is wrong and what it may be.
Shape parse_shape(std::string_view text);

// std::invalid_argument where the shape names a rank that is not there.
void check_shape(const Shape& shape, int size);

// Where the ranks of a shaped transport are.
struct ShapeSurroundings {
  std::vector<int> hosts;            // by rank
  std::vector<bool> has_same_clock;  // by rank: its monotonic clock is this rank's; empty: all
  std::function<Clock::time_point()> now = Clock::now;  // tests give another
  // Longer segments than those below, for long fat networks; 0: none. Only where all pairs are
  // shaped alike.
  std::size_t longest_segment_bytes = 0;
};

// `inner`, shaped. All ranks of it must be, with the same shape. Its name is the inner one's and
// the shape: "tcp,1Gbit,1ms".
std::unique_ptr<Transport> make_shaped(std::unique_ptr<Transport> inner, const Shape& shape,
                                       ShapeSurroundings surroundings);

}  // namespace kolo
