// Floors of a two-rank all-reduce in shared memory: the passes over memory and flags, nothing else.
//
// *Mapped*: both ranks can reach both buffers. Each adds its half of both, and writes the sum to
// both.
//
// *Private*: two flags per segment. Each rank owns half of the elements. It copies the half that
// the other owns into slots, segment by segment. The owner adds the slot to its own half and
// overwrites the slot with the sum in the same pass. The first rank reads the sum back. So a core
// that reads a line also writes it, and the line changes cores once, not twice. A rank has two
// slots: one is filled while the other is answered.
//
// Between rounds each rank checks its result and writes new input, as kolo-bench does for a library
// (pattern.h). This takes longer than the round. Meanwhile other tenants of the machine use the
// last level of cache. With 8 MiB a rank (32 MiB of cache), a round directly after a plain fill
// takes 105 to 120 us, one 1 ms later 195 to 230, one 4 ms later 370.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "bench/limits/float_buffer.h"
#include "bench/limits/kernels.h"
#include "bench/limits/limits.h"
#include "bench/limits/result_checks.h"
#include "bench/limits/shm_slots.h"
#include "bench/limits/thread_team.h"

namespace kolo::bench {
namespace {

struct Side {
  Slot slots[kSlots];
  Flag posted;    // segments that this rank has put into its slots
  Flag answered;  // segments in the other's slots that this rank has summed
};

// The data of both floors: a buffer per rank, which owns half of the elements.
class Buffers {
 public:
  explicit Buffers(const FloorRequest& request)
      : half_(request.bytes / 2 / sizeof(float)),
        buffers_{FloatBuffer(2 * half_, request.pages), FloatBuffer(2 * half_, request.pages)} {}

  void prepare(int rank) {
    auto& buffer = buffers_[rank];
    checks_[rank].next([&](const Pattern& pattern) {
      return count_wrong_reductions(buffer.data(), 0, 2 * half_, 0, pattern);
    });
    fill(buffer.data(), 0, 2 * half_, rank, checks_[rank].pattern());
  }

  std::uint64_t count_wrong() {
    for (const int rank : {0, 1}) prepare(rank);
    return checks_[0].wrong() + checks_[1].wrong();
  }

 protected:
  std::size_t half_;
  FloatBuffer buffers_[2];

 private:
  ResultChecks checks_[2] = {ResultChecks(2), ResultChecks(2)};
};

class Floor : public Buffers {
 public:
  using Buffers::Buffers;

  void all_reduce(int rank) {
    Side& mine = sides_[rank];
    Side& theirs = sides_[1 - rank];
    float* own = buffers_[rank].data() + (rank == 0 ? 0 : half_);
    float* others = buffers_[rank].data() + (rank == 0 ? half_ : 0);
    const std::uint64_t base = mine.posted.get();
    const std::size_t segments = (half_ + kPerSegment - 1) / kPerSegment;
    for (std::size_t s = 0; s < segments; ++s) {
      if (s >= kSlots) collect(mine, theirs, others, s - kSlots, base);
      std::memcpy(mine.slots[s % kSlots].bytes, others + s * kPerSegment,
                  length(s) * sizeof(float));
      mine.posted.publish(base + s + 1);
      theirs.posted.wait_for(base + s + 1);
      add_to_both(own + s * kPerSegment, reinterpret_cast<float*>(theirs.slots[s % kSlots].bytes),
                  length(s));
      mine.answered.publish(base + s + 1);
    }
    for (std::size_t s = segments - std::min(segments, kSlots); s < segments; ++s)
      collect(mine, theirs, others, s, base);
  }

 private:
  static constexpr std::size_t kPerSegment = kSlotBytes / sizeof(float);

  std::size_t length(std::size_t segment) const {
    return std::min(kPerSegment, half_ - segment * kPerSegment);
  }

  void collect(Side& mine, const Side& theirs, float* others, std::size_t s,
               std::uint64_t base) const {
    theirs.answered.wait_for(base + s + 1);
    std::memcpy(others + s * kPerSegment, mine.slots[s % kSlots].bytes, length(s) * sizeof(float));
  }

  Side sides_[2];
};

class MappedFloor : public Buffers {
 public:
  using Buffers::Buffers;

  void all_reduce(int rank) {
    const std::uint64_t round = came_[rank].get() + 1;
    came_[rank].publish(round);
    came_[1 - rank].wait_for(round);
    const std::size_t begin = rank == 0 ? 0 : half_;
    add_to_both(buffers_[rank].data() + begin, buffers_[1 - rank].data() + begin, half_);
    went_[rank].publish(round);
    went_[1 - rank].wait_for(round);
  }

 private:
  Flag came_[2];
  Flag went_[2];
};

template <typename Kind>
Row time_floor(const FloorRequest& request, double seconds, const char* algorithm) {
  const auto floor = std::make_unique<Kind>(request);
  const Round round{[&](int rank) { floor->prepare(rank); },
                    [&](int rank) { floor->all_reduce(rank); }};
  Row row = floor_row(request, "shm", algorithm, 2, seconds, round);
  row.wrong = floor->count_wrong();
  return row;
}

}  // namespace

Row all_reduce_floor(const FloorRequest& request, double seconds) {
  return time_floor<Floor>(request, seconds, "answered in place");
}

Row mapped_all_reduce_floor(const FloorRequest& request, double seconds) {
  return time_floor<MappedFloor>(request, seconds, "both buffers mapped");
}

}  // namespace kolo::bench
