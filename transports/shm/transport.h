// Shared memory transport for ranks of one host; each pair of ranks shares memory of its own.
//
// Two ranks share nothing before the first use of their channel (shm/listener.h). Then each makes a
// memfd and passes it to the other over a unix socket. A memfd has no name in any file system and
// ends with the last of the two processes, however they end. Segments pass through slots in it;
// tiny ones lie in the frame that announces them (shm/layout.h). A segment can be answered in
// place.
//
// Sends make no system call while the peer is awake. A rank that goes to sleep announces in shared
// memory which events it waits for; a peer that causes one of them sends a byte over the socket.
// The end of the socket reports the end of the peer. After an orderly end, all data sent before can
// still be read. After a death, progress() throws kPeerLost within a millisecond. A rank without a
// channel in use learns of the death at its first use, or from the store.
//
// Cost: 1 MiB and one or two descriptors per pair of ranks that communicate (pages are allocated on
// first touch). Up to 56 bytes cross in one cache line, up to 248 in as many lines as they need.
// Above that, one line announces the segment, whose own lines follow.
#pragma once

#include <cstddef>
#include <memory>

#include "transports/registry.h"

namespace kolo::inline v0 {

struct ShmSettings {
  // A multiple of kSegmentAlignment, at most 512 KiB (more is reduced to that), equal on all ranks.
  // Each side has eight slots of this length, or four if it is above 256 KiB.
  std::size_t segment_bytes = 64 * 1024;

  // Shortest segment that the kernel may copy directly into the peer's memory (process_vm_readv).
  // The segment must be received, not viewed; a trial between the two processes must succeed; and
  // their timings must favour it (shm/copy_choice.h). At least 4 KiB; 0: never.
  std::size_t single_copy_bytes = 8 * 1024;

  // Whether a rank that goes to sleep runs memory barriers for its peers as well
  // (posix/host/memory_barrier.h). Without this, or without kernel support, each segment costs one
  // more locked instruction.
  bool has_remote_barriers = true;
};

// Collective over the request's ranks. Error kUnavailable on every rank if one of them is on
// another host or cannot make a memfd; see shm/listener.h for other errors.
std::unique_ptr<Transport> make_shm(const TransportRequest& request,
                                    const ShmSettings& settings = {});

}  // namespace kolo::inline v0
