// The fault decorator: what goes wrong, where and when it is asked to.
//
// A plan in a text, as KOLO_FAULT takes it; every rank is given all of it, and does its own part:
//
//   die@rank=1,segment=100           rank 1 is killed (SIGKILL) when it has moved 100 segments
//   lose@rank=1,peer=0,segment=5     rank 1 loses its peer 0: the channel throws kPeerLost
//   stall@rank=2,for=1s,segment=10   rank 2 stops for a second, as if it had been suspended
//   corrupt@rank=1,segment=3         a bit of the third segment that rank 1 sends is another
//   storm@times=3,seed=7             "not now", up to 3 times before each segment, in every call
//   storm@times=3,on=in              only in calls that receive; on=out: that send
//
// Several are joined by +. `rank` is left out where all ranks are meant, `peer` where every peer
// is. `segment` counts from 1 what the rank sends and receives on the channels of its faults, in
// the order of its own calls (corrupt: what it sends only); the fault comes when that segment is
// asked for. So a plan does the same in every run of the same program, where the order of those
// calls is the same. What a communicator exchanges as it begins, to measure what its channels cost,
// counts as well (none with Reproducibility::kOrdered).
//
// A storm keeps the contract but for one sentence: the minimum of credit is not accepted at once,
// but when it is asked for again. Who is told "not now" by a storm is not let asleep. How often it
// is told so follows from the seed, the rank, the peer and the segment alone.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "../transport.h"

namespace kolo {

enum class FaultKind : std::uint8_t { kDie, kLose, kStall, kCorrupt, kStorm };

struct Fault {
  FaultKind kind = FaultKind::kDie;
  int rank = -1;              // -1: all
  int peer = -1;              // -1: all
  std::uint64_t segment = 1;  // not of a storm
  std::chrono::nanoseconds time{0};
  std::uint64_t times = 0;
  std::uint64_t seed = 1;
  bool is_in = true;  // of a storm
  bool is_out = true;
};

struct FaultPlan {
  std::string text;
  std::vector<Fault> faults;
};

// std::invalid_argument that says which word of `text` is wrong and what it may be.
FaultPlan parse_faults(std::string_view text);

// `inner`, with faults. Its name is the inner one's and the plan. std::invalid_argument where the
// plan names a rank that is not there, or one as its own peer.
std::unique_ptr<Transport> make_faulty(std::unique_ptr<Transport> inner, const FaultPlan& plan);

}  // namespace kolo
