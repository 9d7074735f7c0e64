// Ranks that a test starts itself, like a launcher other than kolo-run.
#pragma once

#include <deque>
#include <string>

#include "test/train/program/program.h"
#include "test/train/program/small_run.h"

namespace kolo::test {

// A port of 127.0.0.1 that the kernel does not assign to other programs during the test.
class Port {
 public:
  enum class Use {
    kKept,  // reserved for a server, which can also bind it
    kTaken  // a listener that never answers
  };
  explicit Port(Use use);
  ~Port();
  Port(const Port&) = delete;
  Port& operator=(const Port&) = delete;
  std::string number() const;

 private:
  int socket_;
};

// The start of one rank, which connects to the store of rank 0 at `port`.
Start rank_start(const Folder& folder, Words arguments, int rank, int size, const Port& port);

// All ranks of a job.
class StartedRanks {
 public:
  StartedRanks(const Folder& folder, const Words& arguments, int size);
  ~StartedRanks();
  StartedRanks(const StartedRanks&) = delete;
  StartedRanks& operator=(const StartedRanks&) = delete;

  Program& operator[](int rank) { return ranks_[static_cast<std::size_t>(rank)]; }
  // Reads the events of rank 0 until they contain `text`. Throws std::runtime_error after a minute.
  void wait_for_event(const std::string& text);

 private:
  Port port_{Port::Use::kKept};
  int events_ = -1;  // the reading end
  std::deque<Program> ranks_;
};

}  // namespace kolo::test
