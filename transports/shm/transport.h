// Ranks of one host, through memory that they share two by two.
//
// Two ranks share nothing before one of them first uses their channel (shm/door.h). Then each has a
// memfd, handed to the other over a unix socket: it has no name in any file system, and is gone
// with the last of the two processes, however that ends. Segments pass through slots of it; tiny
// ones ride in the line that announces them (shm/layout.h). A segment can be answered in place.
//
// Waiting costs the peer nothing while nobody sleeps. A rank that sleeps says in shared memory what
// it waits for, and the peer that makes it true sends a byte over the socket. The socket's end
// tells of the peer's end: in order, and then all that was sent can still be read; or by death, and
// then progress() throws kPeerLost within a millisecond. A rank that had no channel in use with it
// learns of it at the first use, or from the store.
//
// Cost: 1 MiB and a descriptor or two per pair of ranks that talk (pages come as they are touched).
// One cache line crosses for up to 56 bytes, and as many as it takes for up to 248; above, one for
// the announcement and the segment's own.
#pragma once

#include <cstddef>
#include <memory>

#include "transports/registry.h"

namespace kolo {

struct ShmSettings {
  // A multiple of kSegmentAlignment, at most 512 KiB (more is cut to that), the same on every rank.
  // Eight slots of these each way; four, if longer than 256 KiB.
  std::size_t segment_bytes = 64 * 1024;

  // Segments of this length or more that the peer takes into its own memory may be copied there
  // once, by the kernel (process_vm_readv), where a trial between the two processes succeeds and
  // their timings say that it pays (shm/copy_choice.h). At least 4 KiB; 0: none.
  std::size_t single_copy_bytes = 8 * 1024;

  // Whether a rank that goes to sleep may run its peers' memory barriers (posix/memory_barrier.h),
  // so that they need none of their own. Without, and where the kernel cannot, each segment costs a
  // locked instruction more.
  bool has_remote_barriers = true;
};

// Collective over the request's ranks. Error kUnavailable on every rank where one of them is on
// another host or cannot make a memfd; see shm/door.h for the others.
std::unique_ptr<Transport> make_shm(const TransportRequest& request,
                                    const ShmSettings& settings = {});

}  // namespace kolo
