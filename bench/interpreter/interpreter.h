// kolo-bench interpreter: what running a schedule costs over writing the loop by hand.
//
//   streaming   the ring all-reduce by a hand-written loop and by the executor, in turn, over the
//               same inproc channels: threads bound to cores, and one thread that plays two ranks
//   fixed       operations of 8 bytes, where nothing but the interpreter's own work differs
//   planning    writing and compiling one rank's schedule, and the memory that the plan holds
//   cached      finding a plan that was made before, and starting it
//
// Every line has its limit beside it, and says whether it is kept. Apart from `streaming` in
// threads, all is played by one thread, so that no cache line travels and nobody waits.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace kolo::bench {

// One line of the table: by hand where there is such a thing, and the interpreter.
struct InterpreterRow {
  std::string what;
  std::string size;
  double by_hand = -1;  // in `unit`; negative: there is none
  double interpreted = 0;
  std::string unit;     // of the two before
  double judged = 0;    // what the limit is about: a ratio, a difference, a time
  std::string measure;  // "ratio", "ns more"
  double limit = -1;    // negative: it is only told
};

// A plan: one rank's schedule, written and compiled.
struct PlanRow {
  std::string what;
  int ranks = 0;
  double us = 0;          // to write and to compile it
  double most_us = -1;    // the limit; negative: it is only told
  std::size_t small = 0;  // bytes that it holds, started for a message of 1 KiB
  std::size_t large = 0;  // and of 1 GiB, in segments of the same length
};

// Bytes that this program holds allocated; only a program can replace its operator new.
using AllocatedBytes = std::size_t (*)();

struct InterpreterRequest {
  int ranks = 2;          // of the streaming in threads
  bool is_quick = false;  // tiny: to see that it works
  AllocatedBytes allocated_bytes = nullptr;
};

// Throws std::runtime_error where a sum was wrong.
std::vector<InterpreterRow> streaming_rows(const InterpreterRequest& request);
std::vector<InterpreterRow> fixed_rows(const InterpreterRequest& request);
std::vector<PlanRow> planning_rows(const InterpreterRequest& request);
std::vector<InterpreterRow> cached_rows(const InterpreterRequest& request);

// Prints the table. Returns 1 where a line is over its limit, of a quick run only where a plan's
// memory grows with the message, as its times say nothing; else 0.
int run_interpreter(const InterpreterRequest& request);

}  // namespace kolo::bench
