// Binding of threads to cores, and a description of the machine.
#pragma once

#include <string>
#include <vector>

namespace kolo::bench {

// The cores that this process may use, determined at the first call: before ranks are bound.
const std::vector<int>& available_cores();

// Binds the calling thread, and the threads that it starts later, to the rank's share of the
// available cores. With more ranks than cores each rank gets one core, in turn, so that no core is
// idle while others have several ranks.
void bind_rank(int rank, int ranks);

// During its lifetime the calling thread, and the threads that it starts, may use all available
// cores.
class Unbound {
 public:
  Unbound();
  ~Unbound();
  Unbound(const Unbound&) = delete;
  Unbound& operator=(const Unbound&) = delete;

 private:
  std::vector<int> before_;
};

// Binds the calling thread; has no effect if the system refuses.
void bind_to_core(int core);

// One short pause in a spin loop.
void relax();

// "AMD EPYC 9B14"; "unknown processor" if the kernel has no name.
std::string describe_processor();

// "AMD EPYC 9B14, 2 cores, Linux 6.18.0".
std::string describe_machine();

}  // namespace kolo::bench
