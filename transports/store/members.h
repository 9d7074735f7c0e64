// Ranks of a job's communicators, as a store knows them, and the rule by which a process may join.
//
// Two processes with one rank are a failure of the job while its ranks still come: none of them is
// the right one. Once all ranks have come, a further process is a newcomer. It is refused alone.
//
// Pure: no clock, no I/O. Not thread-safe.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace kolo::inline v0 {

struct Membership {
  int rank = 0;
  std::string communicator;  // empty: none, which never conflicts
  int size = 0;              // of the communicator; 0: unknown
  std::string who;           // "host, pid" of the process
};

class Members {
 public:
  enum class Verdict { kWelcome, kTakenTwice, kRefused };
  struct Answer {
    Verdict verdict = Verdict::kWelcome;
    std::string text;  // of the error; empty for a welcome
  };

  // Whether the process may join.
  Answer judge(const Membership& wanted) const;

  // Notes that it has joined, and that it has left again. A process may join several times.
  void join(const Membership& member);
  void leave(std::string_view communicator, int rank);

  bool is_empty() const { return rolls_.empty(); }

  // All ranks of some communicator have come, and not all of them have left.
  bool have_met() const;

  // Calls of join() and leave() that lead to this state.
  struct Event {
    bool is_join = false;
    Membership of;
  };
  std::vector<Event> history() const;

  // Calls `visit` with the rank and the process of every member.
  void visit(const std::function<void(int rank, const std::string& who)>& visit) const;

 private:
  struct Holder {
    int joins = 0;
    std::string who;
  };
  struct Roll {
    int size = 0;
    std::set<int> come;             // ranks that have joined, also those that have left
    std::map<int, Holder> holders;  // ranks that are there; a roll without any is removed

    bool has_met() const { return size > 0 && static_cast<int>(come.size()) == size; }
  };

  std::map<std::string, Roll, std::less<>> rolls_;  // by communicator
};

}  // namespace kolo::inline v0
