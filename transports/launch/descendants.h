// Processes that the ranks started, wherever they have gone: in a process group or a session of
// their own, or left behind by a parent that has ended.
//
// The launcher is the subreaper of its descendants (prctl), so an orphan becomes its child, and
// /proc shows all of them in one tree.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

namespace kolo::inline v0::launch {

struct Descendant {
  pid_t pid = 0;
  pid_t group = 0;
  pid_t child = 0;  // the child of this process from which it descends; itself, if it is one
};

// The living descendants of this process.
std::vector<Descendant> descendants();

// Sends the signal to each descendant that `is_chosen`. SIGKILL: looks again, until none is new, as
// a process may start another one before it gets the signal.
void signal_descendants(int signal, const std::function<bool(const Descendant&)>& is_chosen);

}  // namespace kolo::inline v0::launch
