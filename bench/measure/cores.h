// Where the threads of a measurement run, and on what machine.
#pragma once

#include <string>
#include <vector>

namespace kolo::bench {

// The cores that this process may use, as its first caller found them: before ranks are bound.
const std::vector<int>& available_cores();

// Binds the calling thread, and those that it will start, to the rank's share of the available
// cores, or, of more ranks than cores, to one of them in turn: so that no core is idle while others
// have too many.
void bind_rank(int rank, int ranks);

// The calling thread is on all the available cores meanwhile, and so is what it starts.
class Unbound {
 public:
  Unbound();
  ~Unbound();
  Unbound(const Unbound&) = delete;
  Unbound& operator=(const Unbound&) = delete;

 private:
  std::vector<int> before_;
};

// Binds the calling thread; silently without effect where the system refuses.
void bind_to_core(int core);

// One short wait inside a spin loop.
void relax();

// "AMD EPYC 9B14"; "unknown processor" where the kernel does not tell.
std::string describe_processor();

// "AMD EPYC 9B14, 2 cores, Linux 6.18.0".
std::string describe_machine();

}  // namespace kolo::bench
