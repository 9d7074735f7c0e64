// kolo-bench interpreter: cost of running a schedule compared with a loop written by hand.
//
//   streaming   the ring all-reduce by a hand-written loop and by the executor, in turn, over the
//               same inproc channels: in threads bound to cores, and in one thread for two ranks
//   fixed       operations of 8 bytes, where only the interpreter's own work differs
//   planning    writing and compiling one rank's schedule, and the memory of the plan
//   cached      finding an existing plan and starting it
//
// Every line has a limit and says whether it is kept. Except for streaming in threads everything
// runs in one thread, so that no cache line moves and there are no waits.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace kolo::bench {

// One line of the table: by hand, if that exists, and interpreted.
struct InterpreterRow {
  std::string what;
  std::string size;
  double by_hand = -1;  // in `unit`; negative: none
  double interpreted = 0;
  std::string unit;     // of by_hand and interpreted
  double judged = 0;    // the value that the limit applies to: a ratio, a difference, a time
  std::string measure;  // "ratio", "ns more"
  double limit = -1;    // negative: no limit
};

// A plan: one rank's schedule, written and compiled.
struct PlanRow {
  std::string what;
  int ranks = 0;
  double us = 0;          // to write and compile it
  double most_us = -1;    // the limit; negative: no limit
  std::size_t small = 0;  // bytes of the plan, started for a message of 1 KiB
  std::size_t large = 0;  // and for 1 GiB, in segments of the same length
};

// Function that returns the bytes this program holds allocated; only a program can replace operator
// new.
using AllocatedBytes = std::size_t (*)();

struct InterpreterRequest {
  int ranks = 2;          // for streaming in threads
  bool is_quick = false;  // tiny sizes, as a trial
  AllocatedBytes allocated_bytes = nullptr;
};

// std::runtime_error for a wrong sum.
std::vector<InterpreterRow> streaming_rows(const InterpreterRequest& request);
std::vector<InterpreterRow> fixed_rows(const InterpreterRequest& request);
std::vector<PlanRow> planning_rows(const InterpreterRequest& request);
std::vector<InterpreterRow> cached_rows(const InterpreterRequest& request);

// Prints the table. Returns 1 if a line is over its limit, else 0. In a quick run only a plan whose
// memory grows with the message counts, as times mean nothing.
int run_interpreter(const InterpreterRequest& request);

}  // namespace kolo::bench
