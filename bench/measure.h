// One size, measured for one or more libraries in turn.
//
// An iteration: every rank rewrites what it gives, as a backward pass would just have done; all
// meet; each takes the time of its own call; each checks every element of its result. The
// iteration's time is the longest of the ranks' times. Libraries take turns (A B A B ...) on the
// same buffers, so that whatever drifts drifts for both.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bench/arguments.h"
#include "bench/library.h"
#include "bench/meeting.h"
#include "bench/pattern.h"
#include "bench/statistics.h"

namespace kolo::bench {

// One library at one size.
struct Row {
  std::string library;
  std::string transport;
  std::string algorithm;
  std::string collective;
  Problem problem;
  int ranks = 0;
  std::size_t bytes = 0;
  std::size_t iterations = 0;
  Quantiles time_us;
  std::optional<std::uint64_t> wrong;  // elements, over all iterations and ranks; none: not checked
  double cache_line_us = 0;            // how far apart the cores were
  std::vector<double> pass_us = {};    // the medians of its passes
  Form form = Form::kBlocking;         // of kolo's calls
};

double algorithm_bandwidth(const Row& row);
double bus_bandwidth(const Row& row);

class Bench {
 public:
  // Collective over the meeting's ranks, as are its calls. The meeting must outlive it.
  Bench(Meeting& meeting, const Arguments& arguments);

  // The same rows on every rank, one per library, in their order.
  std::vector<Row> measure(const std::vector<Library*>& libraries, std::size_t bytes);

 private:
  struct Timed {
    double call_us = 0;
    double whole_us = 0;  // with filling and checking
  };
  struct Memory {
    void operator()(std::byte* memory) const;
  };
  using Buffer = std::unique_ptr<std::byte[], Memory>;

  static Buffer allocate(std::size_t bytes);
  Timed iterate(Library& library);
  std::size_t warm_up(Library& library, int count, std::size_t iterations);
  std::vector<double> pass(Library& library, std::size_t iterations);
  void give();
  std::uint64_t count_wrong() const;
  std::uint64_t count_wrong_chunks(const Pattern& pattern) const;
  std::uint64_t count_wrong_shares(const Pattern& pattern) const;
  std::uint64_t count_wrong_barriers(Library& library);

  bool is_server() const { return meeting_.rank() < problem_.servers; }
  void place_buffers();
  std::size_t chunk_begin_bytes() const;

  Meeting& meeting_;
  const Arguments& arguments_;
  Problem problem_;
  std::uint32_t iteration_ = 0;
  std::uint64_t wrong_ = 0;
  Buffer data_;   // the result, and in place the input
  Buffer input_;  // out of place
  std::byte* in_ = nullptr;
  std::byte* out_ = nullptr;
};

}  // namespace kolo::bench
