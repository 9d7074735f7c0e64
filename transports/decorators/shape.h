// Shaping decorator: emulates a network with a given rate, delay and jitter over any transport.
//
// The text, as in KOLO_SHAPE and in the programs' --shape:
//
//   1Gbit,1ms                            every rank has a wire of 1 Gb/s each way; 1 ms delay
//   100Mbit,20ms,jitter=2ms,seed=7       each segment up to 2 ms later, random from the seed
//   10Gbit,burst=256KiB                  a token bucket that saves up to 256 KiB
//   hosts:1Gbit,1ms                      between hosts only (KOLO_HOST_ID can emulate hosts)
//   1Gbit,1ms+0-1:off+2to3:10Mbit        not between 0 and 1; a wire of its own from 2 to 3
//
// Rates are in Kbit, Mbit, Gbit, or KB, MB, GB per second, all decimal; times in ns, us, ms, s. A
// rule for a pair replaces the first rule for that pair; the last matching rule holds. Every rank
// needs the same text.
//
// Model: a segment leaves over the outgoing wire of its rank, in sending order across all channels.
// It is in flight for delay + jitter. It arrives over the incoming wire of its receiver, which all
// peers share (so the wire of a parameter server is the bottleneck, as on a real network). Wires
// are token buckets with cut-through: a flow alone on both wires pays for only one. Order on a
// channel is kept. There is no loss and no congestion control: a single flow has the full rate at
// once.
//
// Implementation: the sender computes the arrival times of a segment and sends it at once, behind
// these times (32 bytes, not counted in statistics). The receiver takes the segment into its own
// memory and shows it when its time has come. So no rank holds a timer for another, a late rank
// delays only itself, and the pipe stays full at any delay. A sender that is more than 10 ms (or 4
// segments) ahead of its wire gets "not now". Times are those of the machine's monotonic clock. If
// two ranks do not share it, the delay counts from the time when the receiver took the segment.
//
// Cost: a copy of each segment at either end, about 0.3 us, and memory. Per channel and direction,
// the receiver keeps up to the bytes in flight, rate x (delay + jitter + 20 ms), but at least 8
// segments of the preferred length below, or 4 of the sent ones. If the receiver does not read, the
// sender keeps as much again. Example: 8.8 MB for 1 Gb/s and 50 ms.
//
// A shaped channel acts as a network: it supports no answers and maps no memory, whatever the
// transport below can do. Channels of unshaped pairs are those of the transport below.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "../transport.h"

namespace kolo::inline v0 {

// Network path from one rank to another.
struct ShapedPath {
  bool is_shaped = false;
  bool is_own_wire = false;            // has its own wire instead of its ranks' wires
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

  std::string text;  // without blanks; the transport's name ends with it
  ShapedPath all;
  bool is_between_hosts_only = false;
  std::vector<Override> overrides;
  std::uint64_t seed = 1;  // of the jitter

  // `hosts`: by rank, as in Topology; empty: all ranks are on one host.
  ShapedPath path(int from, int to, const std::vector<int>& hosts) const;
};

// Throws std::invalid_argument with the wrong word of `text` and the expected ones.
Shape parse_shape(std::string_view text);

// Throws std::invalid_argument if the shape names a rank that does not exist.
void check_shape(const Shape& shape, int size);

// Hosts and clocks of the ranks of a shaped transport.
struct ShapeSurroundings {
  std::vector<int> hosts;            // by rank
  std::vector<bool> has_same_clock;  // by rank: shares this rank's monotonic clock; empty: all do
  std::function<Clock::time_point()> now = Clock::now;  // tests replace it
  // Longest segment if longer than below, for long fat networks; 0: as below. Used only if all
  // pairs are shaped alike.
  std::size_t longest_segment_bytes = 0;
};

// Wraps `inner`. All its ranks must use the same shape. The name is the inner name and the shape:
// "tcp,1Gbit,1ms".
std::unique_ptr<Transport> make_shaped(std::unique_ptr<Transport> inner, const Shape& shape,
                                       ShapeSurroundings surroundings);

}  // namespace kolo::inline v0
