// Transport between CUDA devices of one host (CUDA IPC): data go from device memory to device
// memory in stream order, and no host touches them. Several ranks may share a device.
//
// The best other transport of the ranks handles host memory, control messages, sleep and the death
// of peers: Channel's own calls are calls of that transport. This one adds Channel::stream()
// (cuda/stream_channel.h).
//
// Every rank throws, with the reason, if one of them has no driver, an old driver, no device, not
// enough memory, or a device that the others cannot access.
//
// Run a process for each rank. Ranks as threads of one process share the device's context, which is
// for tests only: calls such as cuMemFree may wait for all streams of the context, also for those
// that wait for the calling rank. All its streams share 8 hardware queues, or the number in
// CUDA_DEVICE_MAX_CONNECTIONS (at most 32, read when CUDA starts). A stream that shares a queue
// with a waiting stream waits, too.
//
// A thread frees the streams of this rank that wait for a peer which has ended
// (cuda/peer_watcher.h), also while no other thread of the rank makes progress.
//
// Cost per peer, in each rank: two sets of slots of 1 MiB of device memory (one for captured work),
// 8 KiB of pinned host memory, and two descriptors. A set has 4 slots, and up to 32 if all ranks
// share one device (cuda/slot_count.h): at most 32 MiB per direction. With captured work the slots
// and the mappings stay until the transport is destroyed, not only until quiesce(), since a graph
// may be launched in between.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "transports/registry.h"

namespace kolo::inline v0 {

namespace cuda {
class Driver;
}

struct CudaIpcSettings {
  int device = -1;                                   // -1: KOLO_CUDA_DEVICE, see settings.h
  std::size_t segment_bytes = std::size_t{1} << 20;  // of slots on the device
  int slots = 0;  // per peer and direction; 0: by the devices of all ranks (cuda/slot_count.h)
  std::shared_ptr<cuda::Driver> driver;  // null: the installed one

  // Makes the transport for everything else. Collective over the same request.
  std::function<std::unique_ptr<Transport>(const TransportRequest& request)> make_host;

  // Equal for ranks of one process, which share device pointers; empty: detected.
  std::string process;

  // How long quiesce() and the destructor wait for running streams, and for peers to close their
  // mappings. After that, memory that may still be in use stays allocated until the process ends.
  std::chrono::milliseconds patience{500};
};

std::unique_ptr<Transport> make_cuda_ipc(const TransportRequest& request,
                                         const CudaIpcSettings& settings);

}  // namespace kolo::inline v0
