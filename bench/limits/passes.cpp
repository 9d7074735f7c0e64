// A bound for more than two ranks in shared memory: what a collective has to read and write, by all
// cores at once, each working on its share of every rank's data; nobody waits for anybody. Pieces
// of 64 KiB, so that what several ranks need is read from memory once. What is given was just
// rewritten, by the core that reads it, which is kinder than the truth.
#include <algorithm>
#include <cstring>
#include <vector>

#include "bench/cores.h"
#include "bench/limits/floats.h"
#include "bench/limits/kernels.h"
#include "bench/limits/limits.h"
#include "bench/limits/team.h"

namespace kolo::bench {
namespace {

constexpr std::size_t kPiece = 64 * 1024 / sizeof(float);

class Passes {
 public:
  Passes(const FloorRequest& request, int threads)
      : collective_(request.collective),
        ranks_(request.ranks),
        threads_(threads),
        count_(request.bytes / sizeof(float)) {
    for (int rank = 0; rank < ranks_; ++rank) {
      data_.emplace_back(count_, request.pages);
      if (collective_ == Collective::kAllToAll) results_.emplace_back(count_, request.pages);
    }
  }

  void prepare(int thread) {
    for (int rank = 0; rank < ranks_; ++rank) {
      const bool gives_nothing = collective_ == Collective::kBroadcast && rank != 0;
      const auto [begin, end] =
          collective_ == Collective::kAllGather ? share_of(rank, thread) : share(0, count_, thread);
      if (!gives_nothing)
        std::fill(of(data_, rank) + begin, of(data_, rank) + end, static_cast<float>(rank + 1));
    }
  }

  void work(int thread) {
    if (collective_ == Collective::kAllReduce) {
      const auto [begin, end] = share(0, count_, thread);
      for (int rank = 0; rank < ranks_; ++rank)
        scale_in_place(of(data_, rank) + begin, end - begin, 1.5F);
      return;
    }
    if (collective_ == Collective::kBroadcast) return move_pieces(share(0, count_, thread), 0);
    for (int owner = 0; owner < ranks_; ++owner) move_pieces(share_of(owner, thread), owner);
  }

  std::uint64_t count_wrong() const {
    std::uint64_t wrong = 0;
    for (int rank = 0; rank < ranks_; ++rank) {
      for (int owner = 0; owner < ranks_; ++owner) {
        const Share chunk = chunk_of(owner);
        for (std::size_t i = chunk.begin; i < chunk.end; ++i)
          wrong += is_wrong(rank, owner, i) ? 1 : 0;
      }
    }
    return wrong;
  }

 private:
  struct Share {
    std::size_t begin = 0;
    std::size_t end = 0;
  };

  static float* of(std::vector<Floats>& all, int rank) {
    return all[static_cast<std::size_t>(rank)].data();
  }

  // What one thread does of a range.
  Share share(std::size_t begin, std::size_t end, int thread) const {
    const auto all = static_cast<std::size_t>(threads_);
    const auto mine = static_cast<std::size_t>(thread);
    return {begin + (end - begin) * mine / all, begin + (end - begin) * (mine + 1) / all};
  }

  // Which `owner` gives or gets.
  Share chunk_of(int owner) const {
    const auto all = static_cast<std::size_t>(ranks_);
    const auto first = static_cast<std::size_t>(owner);
    return {count_ * first / all, count_ * (first + 1) / all};
  }

  Share share_of(int owner, int thread) const {
    const Share chunk = chunk_of(owner);
    return share(chunk.begin, chunk.end, thread);
  }

  // Of element i, in the chunk of `owner`.
  bool is_wrong(int rank, int owner, std::size_t i) const {
    const auto self = static_cast<std::size_t>(rank);
    const float found = data_[self][i];
    const auto given = static_cast<float>(rank + 1);
    switch (collective_) {
      case Collective::kAllReduce:
        return found != 1.5F * given;
      case Collective::kBroadcast:
        return found != 1.0F;
      case Collective::kAllGather:
        return found != static_cast<float>(owner + 1);
      case Collective::kReduceScatter:
        return found != (owner == rank ? static_cast<float>(ranks_ * (ranks_ + 1) / 2) : given);
      default:
        return results_[self][i] != given;
    }
  }

  // Between `owner` and all others, piece by piece.
  void move_pieces(Share range, int owner) {
    for (std::size_t begin = range.begin; begin < range.end; begin += kPiece) {
      const std::size_t count = std::min(kPiece, range.end - begin);
      for (int rank = 0; rank < ranks_; ++rank) move(rank, owner, begin, count);
    }
  }

  void move(int rank, int owner, std::size_t begin, std::size_t count) {
    float* own = of(data_, owner) + begin;
    float* other = of(data_, rank) + begin;
    if (collective_ == Collective::kAllToAll) {  // a share of every rank's for the owner
      std::memcpy(of(results_, rank) + begin, other, count * sizeof(float));
    } else if (rank != owner && collective_ == Collective::kReduceScatter) {
      add_to(own, other, count);
    } else if (rank != owner) {
      std::memcpy(other, own, count * sizeof(float));
    }
  }

  Collective collective_;
  int ranks_;
  int threads_;
  std::size_t count_;
  std::vector<Floats> data_;
  std::vector<Floats> results_;  // of an all-to-all
};

}  // namespace

Row passes_floor(const FloorRequest& request, double seconds) {
  const int threads = std::min(request.ranks, static_cast<int>(available_cores().size()));
  Passes passes(request, threads);
  const Round round{[&](int thread) { passes.prepare(thread); },
                    [&](int thread) { passes.work(thread); }};
  Row row = floor_row(request, "shm", "each byte once", threads, seconds, round);
  row.wrong = passes.count_wrong();
  return row;
}

}  // namespace kolo::bench
