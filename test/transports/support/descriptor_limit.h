// A process that can open no more descriptors, for a while.
#pragma once

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>
#include <utility>
#include <vector>

#include "transports/posix/descriptor.h"

namespace kolo::test {

// Limits this process to its current descriptors for the life of this object. A closed descriptor
// makes room for a new one.
class DescriptorLimit {
 public:
  DescriptorLimit() {
    ::getrlimit(RLIMIT_NOFILE, &old_);
    int end = 0;  // one more than the highest in use
    for (int i = 0; i < kHighest; ++i) {
      if (::fcntl(i, F_GETFD) >= 0) end = i + 1;
    }
    posix::Descriptor filler(::dup(0));
    for (; filler.is_open() && filler.get() < end; filler = posix::Descriptor(::dup(0)))
      fillers_.push_back(std::move(filler));
    rlimit none = old_;
    none.rlim_cur = static_cast<rlim_t>(end);
    ::setrlimit(RLIMIT_NOFILE, &none);
  }
  ~DescriptorLimit() { ::setrlimit(RLIMIT_NOFILE, &old_); }
  DescriptorLimit(const DescriptorLimit&) = delete;
  DescriptorLimit& operator=(const DescriptorLimit&) = delete;

 private:
  static constexpr int kHighest = 4096;

  rlimit old_{};
  std::vector<posix::Descriptor> fillers_;  // for unused numbers below the limit
};

}  // namespace kolo::test
