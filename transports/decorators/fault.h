// Fault decorator: injects faults at given places and times.
//
// A plan is a text, as in KOLO_FAULT. Every rank gets the whole plan and executes its own part:
//
//   die@rank=1,segment=100           rank 1 is killed (SIGKILL) at its segment 100
//   lose@rank=1,peer=0,segment=5     rank 1 loses its peer 0: the channel throws kPeerLost
//   stall@rank=2,for=1s,segment=10   rank 2 stops for a second, as if it had been suspended
//   corrupt@rank=1,segment=3         one bit of the third segment that rank 1 sends is flipped
//   storm@times=3,seed=7             "not now", up to 3 times before each segment, in every call
//   storm@times=3,on=in              only in receiving calls; on=out: only in sending calls
//
// A + joins several faults. Without `rank`, a fault holds for all ranks; without `peer`, for all
// peers. `segment` counts from 1 the segments that the rank sends and receives on the channels of
// the fault, in the order of its calls (corrupt: only sent segments). The fault happens when that
// segment is requested. So a plan does the same in every run with the same order of calls. The cost
// measurements at the start of a communicator count as well (Reproducibility::kOrdered has none).
//
// A storm keeps the transport contract with one exception: the minimum credit is not accepted at
// the first call, but after repeated ones. A rank that got "not now" from a storm is kept awake.
// The number of refusals follows only from the seed, the rank, the peer and the segment.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "../transport.h"

namespace kolo::inline v0 {

enum class FaultKind : std::uint8_t { kDie, kLose, kStall, kCorrupt, kStorm };

struct Fault {
  FaultKind kind = FaultKind::kDie;
  int rank = -1;              // -1: all
  int peer = -1;              // -1: all
  std::uint64_t segment = 1;  // unused in a storm
  std::chrono::nanoseconds time{0};
  std::uint64_t times = 0;
  std::uint64_t seed = 1;
  bool is_in = true;  // storm only
  bool is_out = true;
};

struct FaultPlan {
  std::string text;
  std::vector<Fault> faults;
};

// Throws std::invalid_argument with the wrong word of `text` and the expected ones.
FaultPlan parse_faults(std::string_view text);

// Wraps `inner`. The name is the inner name and the plan. Throws std::invalid_argument if the plan
// names a rank that does not exist, or a rank as its own peer.
std::unique_ptr<Transport> make_faulty(std::unique_ptr<Transport> inner, const FaultPlan& plan);

}  // namespace kolo::inline v0
