// Runs one rank's part of a pass: iterations of one library, timed and checked.
//
// An iteration: every rank writes new inputs, all ranks meet at a barrier, each rank times its own
// call, and each checks every element of its result. The iteration's time is the longest of the
// ranks' times. Ranks of kolo-bench and worker processes of peers (peers/mpi_worker.cpp) use the
// same code.
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
  // `data` holds the result, and in place also the input. `input` is the input out of place. Both,
  // and the group, must outlive the runner.
  PassRunner(RankGroup& group, std::byte* data, std::byte* input);

  // Collective over the group's ranks; the same result on all of them.
  PassResult run_pass(Library& library, const PassRequest& turn);

 private:
  struct Timed {
    double call_us = 0;
    double whole_us = 0;  // including filling and checking
  };

  Timed iterate(Library& library);
  std::size_t warm_up(Library& library, PassResult& result);
  void pass(Library& library, std::size_t iterations, PassResult& result);
  void give();
  std::uint64_t count_wrong() const;
  std::uint64_t count_wrong_chunks(int owners, const Pattern& pattern) const;
  std::uint64_t count_wrong_shares(const Pattern& pattern) const;
  std::uint64_t count_wrong_barriers(Library& library);

  // For problems with servers: is_server: a dedicated server; serves: dedicated, or server and
  // worker at once.
  bool is_server() const { return group_.rank() < turn_.problem.servers; }
  bool serves() const { return is_server() || turn_.problem.servers == 0; }
  // Number of servers; the number of ranks if every rank serves.
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
