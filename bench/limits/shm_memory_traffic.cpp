// Bound for more than two ranks in shared memory: the bytes that a collective must read and write.
// All cores work at once, each on its share of every rank's data, without waits. With pieces of 64
// KiB, data that several ranks need is read from memory only once.
//
// Inputs were just written by the core that reads them, which favors the bound. Results are checked
// (see shm_all_reduce.cpp).
#include <algorithm>
#include <cstring>
#include <vector>

#include "bench/limits/float_buffer.h"
#include "bench/limits/kernels.h"
#include "bench/limits/limits.h"
#include "bench/limits/result_checks.h"
#include "bench/limits/thread_team.h"
#include "bench/measure/cores.h"

namespace kolo::bench {
namespace {

constexpr std::size_t kPiece = 64 * 1024 / sizeof(float);

bool is_scan(Collective collective) {
  return collective == Collective::kScan || collective == Collective::kExclusiveScan;
}

// Whether every rank works on all data instead of shares.
bool is_whole(Collective collective) {
  return collective == Collective::kAllReduce || collective == Collective::kBroadcast ||
         collective == Collective::kReduce || is_scan(collective);
}

class MemoryTraffic {
 public:
  MemoryTraffic(const FloorRequest& request, int threads)
      : collective_(request.collective),
        ranks_(request.ranks),
        threads_(threads),
        count_(request.bytes / sizeof(float)),
        checks_(static_cast<std::size_t>(threads), ResultChecks(request.ranks)) {
    for (int rank = 0; rank < ranks_; ++rank) {
      data_.emplace_back(count_, request.pages);
      if (collective_ == Collective::kAllToAll) results_.emplace_back(count_, request.pages);
    }
  }

  void prepare(int thread) {
    ResultChecks& checks = checks_[static_cast<std::size_t>(thread)];
    checks.next([&](const Pattern& pattern) { return count_wrong(thread, pattern); });
    for (int rank = 0; rank < ranks_; ++rank) give(rank, thread, checks.pattern());
  }

  void work(int thread) {
    if (collective_ == Collective::kAllReduce) {
      const auto [begin, end] = share(0, count_, thread);
      for (int rank = 0; rank < ranks_; ++rank)
        scale_in_place(of(data_, rank) + begin, end - begin, 1.0F);
      return;
    }
    if (is_scan(collective_)) return scan_pieces(share(0, count_, thread));
    if (is_whole(collective_)) return move_pieces(share(0, count_, thread), 0);
    for (int owner = 0; owner < ranks_; ++owner) move_pieces(share_of(owner, thread), owner);
  }

  std::uint64_t count_wrong() {
    std::uint64_t wrong = 0;
    for (int thread = 0; thread < threads_; ++thread) {
      prepare(thread);
      wrong += checks_[static_cast<std::size_t>(thread)].wrong();
    }
    return wrong;
  }

 private:
  struct Share {
    std::size_t begin = 0;
    std::size_t end = 0;
  };

  static float* of(std::vector<FloatBuffer>& all, int rank) {
    return all[static_cast<std::size_t>(rank)].data();
  }

  // One thread's part of a range.
  Share share(std::size_t begin, std::size_t end, int thread) const {
    const auto all = static_cast<std::size_t>(threads_);
    const auto mine = static_cast<std::size_t>(thread);
    return {begin + (end - begin) * mine / all, begin + (end - begin) * (mine + 1) / all};
  }

  // The chunk of `owner`.
  Share chunk_of(int owner) const {
    const auto all = static_cast<std::size_t>(ranks_);
    const auto first = static_cast<std::size_t>(owner);
    return {count_ * first / all, count_ * (first + 1) / all};
  }

  static Share share_in(Share chunk, Share share) {
    return {std::max(chunk.begin, share.begin), std::min(chunk.end, share.end)};
  }

  Share share_of(int owner, int thread) const {
    const Share chunk = chunk_of(owner);
    return share(chunk.begin, chunk.end, thread);
  }

  // Wrong elements in one thread's part.
  std::uint64_t count_wrong(int thread, const Pattern& pattern) {
    std::uint64_t wrong = 0;
    for (int owner = 0; owner < ranks_; ++owner) {
      const auto [begin, end] = is_whole(collective_)
                                    ? share_in(chunk_of(owner), share(0, count_, thread))
                                    : share_of(owner, thread);
      for (int rank = 0; rank < ranks_ && begin < end; ++rank)
        wrong += count_wrong(rank, owner, {begin, end}, pattern);
    }
    return wrong;
  }

  std::uint64_t count_wrong(int rank, int owner, Share range, const Pattern& pattern) {
    const std::size_t count = range.end - range.begin;
    const float* data = of(data_, rank) + range.begin;
    switch (collective_) {
      case Collective::kReduceScatter:
        return owner == rank ? count_wrong_reductions(data, range.begin, count, 0, pattern) : 0;
      case Collective::kReduce:
        return rank == 0 ? count_wrong_reductions(data, range.begin, count, 0, pattern) : 0;
      case Collective::kScan:
        return count_wrong_reductions(data, range.begin, count, 0, rank + 1, pattern);
      case Collective::kExclusiveScan:
        return rank == 0 ? 0 : count_wrong_reductions(data, range.begin, count, 0, rank, pattern);
      case Collective::kBroadcast:
        return count_wrong_copies(data, range.begin, count, 0, pattern);
      case Collective::kGather:
        return rank == 0 ? count_wrong_copies(data, range.begin, count, owner, pattern) : 0;
      case Collective::kScatter:
        return rank == owner ? count_wrong_copies(data, range.begin, count, 0, pattern) : 0;
      case Collective::kAllGather:
        return count_wrong_copies(data, range.begin, count, owner, pattern);
      case Collective::kAllToAll:
        return count_wrong_copies(of(results_, rank) + range.begin, range.begin, count, rank,
                                  pattern);
      default:  // the passes of an all-reduce do not change the data
        return count_wrong_copies(data, range.begin, count, rank, pattern);
    }
  }

  // Writes the part of `rank`'s input that this thread also checks later, so no wait is needed in
  // between.
  void give(int rank, int thread, const Pattern& pattern) {
    const auto rewrite = [&](Share range) {
      fill(of(data_, rank) + range.begin, range.begin, range.end - range.begin, rank, pattern);
    };
    switch (collective_) {
      case Collective::kAllGather:
      case Collective::kGather:
        return rewrite(share_of(rank, thread));
      case Collective::kScatter:
        if (rank != 0) return;
        [[fallthrough]];
      case Collective::kReduceScatter:
        for (int owner = 0; owner < ranks_; ++owner) rewrite(share_of(owner, thread));
        return;
      case Collective::kBroadcast:
        if (rank != 0) return;
        [[fallthrough]];
      default:
        return rewrite(share(0, count_, thread));
    }
  }

  // Moves data between `owner` and all other ranks, piece by piece.
  void move_pieces(Share range, int owner) {
    for (std::size_t begin = range.begin; begin < range.end; begin += kPiece) {
      const std::size_t count = std::min(kPiece, range.end - begin);
      for (int rank = 0; rank < ranks_; ++rank) move(rank, owner, begin, count);
    }
  }

  // Computes every rank's result from the previous rank's.
  void scan_pieces(Share range) {
    std::vector<float> before(kPiece);  // the sum of all previous ranks
    std::vector<float> own(kPiece);
    for (std::size_t begin = range.begin; begin < range.end; begin += kPiece) {
      const std::size_t count = std::min(kPiece, range.end - begin);
      const std::size_t bytes = count * sizeof(float);
      if (collective_ == Collective::kExclusiveScan)
        std::memcpy(before.data(), of(data_, 0) + begin, bytes);
      for (int rank = 1; rank < ranks_; ++rank) {
        float* data = of(data_, rank) + begin;
        if (collective_ == Collective::kScan) {
          add_to(data, of(data_, rank - 1) + begin, count);
          continue;
        }
        std::memcpy(own.data(), data, bytes);
        std::memcpy(data, before.data(), bytes);
        if (rank + 1 < ranks_) add_to(before.data(), own.data(), count);
      }
    }
  }

  void move(int rank, int owner, std::size_t begin, std::size_t count) {
    float* own = of(data_, owner) + begin;
    float* other = of(data_, rank) + begin;
    if (collective_ == Collective::kAllToAll) {  // every rank's share for the owner
      std::memcpy(of(results_, rank) + begin, other, count * sizeof(float));
    } else if (collective_ == Collective::kScatter) {
      if (rank == 0 && owner != 0) std::memcpy(own, other, count * sizeof(float));
    } else if (rank != owner && is_reduction(collective_)) {
      add_to(own, other, count);
    } else if (rank != owner && (rank == 0 || collective_ != Collective::kGather)) {
      std::memcpy(other, own, count * sizeof(float));
    }
  }

  Collective collective_;
  int ranks_;
  int threads_;
  std::size_t count_;
  std::vector<FloatBuffer> data_;
  std::vector<FloatBuffer> results_;  // for all-to-all
  std::vector<ResultChecks> checks_;  // by thread
};

}  // namespace

Row memory_traffic_floor(const FloorRequest& request, double seconds) {
  const int threads = std::min(request.ranks, static_cast<int>(available_cores().size()));
  MemoryTraffic passes(request, threads);
  const Round round{[&](int thread) { passes.prepare(thread); },
                    [&](int thread) { passes.work(thread); }};
  Row row = floor_row(request, "shm", "each byte once", threads, seconds, round);
  row.wrong = passes.count_wrong();
  return row;
}

}  // namespace kolo::bench
