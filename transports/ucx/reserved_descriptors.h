// File descriptors that UCX is going to want. Where it lacks one it aborts the process, or is as it
// comes to connecting: so this process is asked first whether it can have them. What was promised
// to one rank and is not open yet is not free for another one, which may be a thread beside it.
#pragma once

#include <mutex>

namespace kolo::ucx {

class ReservedDescriptors {
 public:
  // `at_once` are for who opens them now, and then says opened(): until then nobody else counts.
  // `later` are promised for the life of this object. From any thread. Error kUnavailable, with
  // what to do, unless as many can be opened beside what was promised to others.
  ReservedDescriptors(int at_once, int later);
  ~ReservedDescriptors();
  ReservedDescriptors(const ReservedDescriptors&) = delete;
  ReservedDescriptors& operator=(const ReservedDescriptors&) = delete;

  void opened() { counting_.unlock(); }

 private:
  std::unique_lock<std::mutex> counting_;
  int later_ = 0;
};

}  // namespace kolo::ucx
