// Reservation of the file descriptors that UCX will open. Without a free descriptor UCX aborts the
// process or fails to connect, so kolo first checks that the process can have them. Descriptors
// that are reserved for one rank and not open yet are not free for another rank, which may be a
// thread of the same process.
#pragma once

#include <mutex>

namespace kolo::inline v0::ucx {

class ReservedDescriptors {
 public:
  // `at_once` descriptors are for a caller that opens them now and then calls opened(); until then
  // other threads wait. `later` descriptors stay reserved for the life of this object. Safe from
  // any thread. Error kUnavailable, with the remedy, if the process cannot open so many beside the
  // reserved ones.
  ReservedDescriptors(int at_once, int later);
  ~ReservedDescriptors();
  ReservedDescriptors(const ReservedDescriptors&) = delete;
  ReservedDescriptors& operator=(const ReservedDescriptors&) = delete;

  void opened() { counting_.unlock(); }

 private:
  std::unique_lock<std::mutex> counting_;
  int later_ = 0;
};

}  // namespace kolo::inline v0::ucx
