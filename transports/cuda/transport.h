// Ranks of one host with a CUDA device each, or several on one: device memory goes from device to
// device, ordered on their streams, and no host touches it.
//
// Host memory, control, sleep and the news of a peer's death are the business of the best transport
// that the ranks have without this one; Channel's own calls are its calls. What is added is
// Channel::stream() (cuda/stream_channel.h).
//
// Refused on every rank, in words, where one of them has no driver, an old one, no device, not
// enough memory, or a device that the others cannot reach.
//
// Cost: 4 slots of 1 MiB of device memory and 8 KiB of pinned host memory per peer, in each rank;
// two descriptors per peer. Where work is captured into graphs, as many slots once more for each
// peer that has a part in it; they, and what is mapped, stay until the transport's end and not only
// until quiesce(), as a graph may be launched in between.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "transports/registry.h"

namespace kolo {

namespace cuda {
class Driver;
}

struct CudaIpcSettings {
  int device = -1;                                   // -1: KOLO_CUDA_DEVICE, as settings.h has it
  std::size_t segment_bytes = std::size_t{1} << 20;  // of slots on the device
  int slots = kMinimumCredit;                        // per peer and direction
  std::shared_ptr<cuda::Driver> driver;              // null: the installed one

  // The transport for all the rest, collective over the same request.
  std::function<std::unique_ptr<Transport>(const TransportRequest& request)> make_host;

  // Equal for ranks of one process, which see each other's device pointers; empty: found out.
  std::string process;

  // How long the end waits for streams that are still at work, and for peers to close what they
  // have mapped. After that memory that may still be in use stays until the process ends.
  std::chrono::milliseconds patience{500};
};

std::unique_ptr<Transport> make_cuda_ipc(const TransportRequest& request,
                                         const CudaIpcSettings& settings);

}  // namespace kolo
