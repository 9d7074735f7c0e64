// IPC mappings of a process: each allocation of another process is opened once per context, and
// closed when its last user has ended its use.
//
// According to the documentation, the driver counts repeated opens of a handle. In practice it
// returns kAlreadyMapped. It also does so for a new allocation at the place of one that is still
// open (openucx/ucx#3192 and #4599, pmodels/mpich#7821). Small allocations share a block of 2 MiB,
// and the whole block is mapped. So on kAlreadyMapped, the caller closes all mappings that no
// pending work needs (end_unneeded), and tries again.
//
// A closing may wait for all streams of the context, so the caller decides when to do it
// (deferred_frees.h). Until then the mapping is *ending*. No mutex is held during a call that opens
// or closes.
//
// Threading: safe from any thread; the caller makes the context current.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <mutex>
#include <vector>

#include "transports/cuda/driver_values.h"

namespace kolo::inline v0::cuda {

class Driver;

class IpcMappings {
 public:
  // A user whose work has increasing numbers. Called from any thread, until it has closed its last
  // mapping.
  class Worker {
   public:
    virtual std::uint64_t done() const = 0;   // work up to this number is done
    virtual std::uint64_t given() const = 0;  // work up to this number will be done in any case
   protected:
    ~Worker() = default;
  };

  // A use of a mapping: for work `work` of `worker`, or, without a worker, until it is closed.
  // `buffer`: the allocation's number in its own process, to tell it from a later allocation with
  // the same handle; 0: not known.
  struct Use {
    const Worker* worker = nullptr;
    std::uint64_t work = 0;
    std::uint64_t buffer = 0;
  };

  struct Opened {
    int code = 0;  // the driver's; the rest is valid with kSuccess
    Address mapped = 0;
    std::uint64_t ticket = 0;  // identifies this use; never used again
    // With kAlreadyMapped: the obstacle may go, or another thread is opening the allocation. Known
    // at the time of the driver's call, since other threads may have changed it afterwards.
    bool may_open_later = false;
  };

  Opened open(Driver& driver, Context context, const IpcHandle& handle, Use use);
  // Extends the use to `work`. False if the mapping has ended, since no pending work needed it.
  bool use(std::uint64_t ticket, std::uint64_t work);

  // Ends a use. Returns the mapping if this was the last one: close it, then call forget(). 0:
  // nothing to close.
  Address end(std::uint64_t ticket);
  // As above, for a use without a worker.
  Address end(Context context, Address mapped);
  // Ends all mappings that no pending work needs, likewise.
  std::vector<Address> end_unneeded(Context context);
  // The mapping is closed.
  void forget(Address mapped);

  // True if a mapping has ended and is not closed.
  bool is_any_ending(Context context) const;
  // After kAlreadyMapped: true if the obstacle may be a mapping that is ending, whose work will
  // end, or that another thread is opening. Then try again later.
  bool is_any_to_end(Context context) const;

 private:
  struct Opening {
    Context context = nullptr;
    IpcHandle handle{};
    std::uint64_t buffer = 0;
    Address mapped = 0;                 // 0: a thread is opening it
    std::map<std::uint64_t, Use> uses;  // by ticket; empty: it is ending
  };

  Opening* find(Context context, const IpcHandle& handle, const Use& use);
  bool is_any_to_end_locked(Context context) const;
  Opened add_use(Opening& opening, const Use& use);
  Address end_locked(std::uint64_t ticket);

  mutable std::mutex mutex_;
  std::list<Opening> mappings_;
  std::map<std::uint64_t, Opening*> by_ticket_;
  std::uint64_t last_ticket_ = 0;
};

}  // namespace kolo::inline v0::cuda
