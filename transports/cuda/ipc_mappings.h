// What of other processes' memory is open in this process: each allocation once in a context,
// whoever wants it, and closed when the last of them has closed it.
//
// The driver's documentation has it count a handle that is opened once more; in practice it says
// kAlreadyMapped, to that and to an allocation that lies where one that is still open lay before
// (openucx/ucx#3192 and #4599, pmodels/mpich#7821). Small allocations share a block of 2 MiB, which
// is what is mapped. So where it says that, all that nobody's work needs is closed, whoever's it
// is, and the driver is asked once more.
//
// Threading: from any thread; the calls are made with the context current.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <mutex>

#include "transports/cuda/driver_values.h"

namespace kolo::cuda {

class Driver;

class IpcMappings {
 public:
  // Who uses mappings for work with numbers that grow. Asked from any thread, until it has closed
  // the last of them.
  class Worker {
   public:
    virtual std::uint64_t done() const = 0;   // work up to this is done
    virtual std::uint64_t given() const = 0;  // and up to this will be, whatever comes
   protected:
    ~Worker() = default;
  };

  // For the work; without a worker until it is closed. `buffer`: the allocation's number at home,
  // which tells it from a later one that has its handle; 0: not known.
  struct Use {
    const Worker* worker = nullptr;
    std::uint64_t work = 0;
    std::uint64_t buffer = 0;
  };

  struct Opened {
    int code = 0;  // the driver's; the rest counts where it is kSuccess
    Address mapped = 0;
    std::uint64_t ticket = 0;  // of this use, never used again
    // kAlreadyMapped, and what is in the way may be what other work still uses: it is worthwhile to
    // ask again later.
    bool is_for_now = false;
  };

  Opened open(Driver& driver, Context context, const IpcHandle& handle, Use use);
  // For this work, too; false where it has been closed meanwhile, as nobody needed it.
  bool use(std::uint64_t ticket, std::uint64_t work);
  void close(Driver& driver, std::uint64_t ticket);
  // The same, of a use without a worker.
  void close(Driver& driver, Context context, Address mapped);

 private:
  struct Opening {
    Context context = nullptr;
    IpcHandle handle{};
    std::uint64_t buffer = 0;
    Address mapped = 0;
    std::map<std::uint64_t, Use> uses;  // by ticket
  };

  bool close_unneeded(Driver& driver, Context context);
  bool is_any_to_end(Context context) const;

  std::mutex mutex_;
  std::list<Opening> mappings_;
  std::map<std::uint64_t, Opening*> by_ticket_;
  std::uint64_t last_ticket_ = 0;
};

}  // namespace kolo::cuda
