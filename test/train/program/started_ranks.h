// Ranks that a test starts itself, as a launcher that is not kolo's would.
#pragma once

#include <deque>
#include <string>

#include "test/train/program/program.h"
#include "test/train/program/small_run.h"

namespace kolo::test {

// A port of 127.0.0.1 that the kernel gives to nobody else meanwhile.
class Port {
 public:
  enum class Use {
    kKept,  // for a server, which can bind it as well
    kTaken  // somebody listens, and never says a word
  };
  explicit Port(Use use);
  ~Port();
  Port(const Port&) = delete;
  Port& operator=(const Port&) = delete;
  std::string number() const;

 private:
  int socket_;
};

// One rank, which meets the others at a port that rank 0 serves.
Start rank_start(const Folder& folder, Words arguments, int rank, int size, const Port& port);

// All ranks of a job.
class StartedRanks {
 public:
  StartedRanks(const Folder& folder, const Words& arguments, int size);
  ~StartedRanks();
  StartedRanks(const StartedRanks&) = delete;
  StartedRanks& operator=(const StartedRanks&) = delete;

  Program& operator[](int rank) { return ranks_[static_cast<std::size_t>(rank)]; }
  // Reads what rank 0 tells its launcher, until it has `text`; std::runtime_error after a minute.
  void wait_for_event(const std::string& text);

 private:
  Port port_{Port::Use::kKept};
  int events_ = -1;  // the end that we read
  std::deque<Program> ranks_;
};

}  // namespace kolo::test
