// One rank's part in a turn: iterations of one library, timed and checked.
//
// An iteration: every rank rewrites what it gives, as a backward pass would just have done; all
// meet; each takes the time of its own call; each checks every element of its result. The
// iteration's time is the longest of the ranks' times. Whoever plays, a rank of kolo-bench or a
// peer's own process (peers/mpi_worker.cpp), does it by this code.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "bench/measure/library.h"
#include "bench/measure/pass.h"
#include "bench/measure/pattern.h"
#include "bench/measure/rank_group.h"

namespace kolo::bench {

class PassRunner {
 public:
  // `data` holds the result, and in place the input as well; `input` what is given out of place.
  // Both, and the group, must outlive it.
  PassRunner(RankGroup& group, std::byte* data, std::byte* input);

  // Collective over the group's ranks; the same result on all of them.
  PassResult run_pass(Library& library, const PassRequest& turn);

 private:
  struct Timed {
    double call_us = 0;
    double whole_us = 0;  // with filling and checking
  };

  Timed iterate(Library& library);
  std::size_t warm_up(Library& library, PassResult& result);
  void pass(Library& library, std::size_t iterations, PassResult& result);
  void give();
  std::uint64_t count_wrong() const;
  std::uint64_t count_wrong_chunks(int owners, const Pattern& pattern) const;
  std::uint64_t count_wrong_shares(const Pattern& pattern) const;
  std::uint64_t count_wrong_barriers(Library& library);

  // Of a problem with servers: dedicated to it; a worker; one that serves, besides or only.
  bool is_server() const { return group_.rank() < turn_.problem.servers; }
  bool serves() const { return is_server() || turn_.problem.servers == 0; }
  // Servers of the problem, or as many as ranks where each is one.
  int servers() const { return turn_.problem.servers > 0 ? turn_.problem.servers : group_.size(); }
  bool has_input() const;
  bool has_output() const;
  void place_buffers(const Library& library);
  std::size_t chunk_begin_bytes() const;

  RankGroup& group_;
  std::byte* data_;
  std::byte* input_;
  PassRequest turn_;
  std::uint64_t wrong_ = 0;  // of this rank
  std::byte* in_ = nullptr;
  std::byte* out_ = nullptr;
  const std::byte* result_ = nullptr;
};

}  // namespace kolo::bench
