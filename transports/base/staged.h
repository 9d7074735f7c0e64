// Decorator that adds device memory to a transport for host memory (of this build or from outside).
//
// Outgoing data are copied from the device into pinned memory and sent from there. Incoming data
// are received into pinned memory and copied to the device. This is done in pieces, so that both
// copies and the network overlap. It adds Channel::stream(). Name, sleep and liveness remain the
// host transport's.
//
// A piece is one segment of the host's form on the wire, in the order of the calls. Both forms may
// alternate on a channel. So a rank with a device can talk to one without, if that one runs the
// same schedule over the host transport with the same segment length (Capabilities::segment_bytes
// of the stream's form).
//
// progress() enqueues the copies: streams wait while their rank makes no progress. The host can be
// far ahead of the device, but a driver's queue is finite, and a host that waited in the driver
// could not make progress. So with `most_under_way` operations unfinished, every call returns "not
// now", also reserve and view.
//
// Cost: up to 4 MiB of pinned host memory per pair, and the same on the device, from the first
// Channel::stream(). Pinning and allocating may wait for the streams of the device, which wait for
// this rank's progress. So ask for all channels' stream forms before the first batch.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "../transport.h"

namespace kolo::inline v0 {

namespace cuda {
class Driver;
}

struct StagedSettings {
  int device = -1;                       // -1: KOLO_CUDA_DEVICE (settings.h)
  std::shared_ptr<cuda::Driver> driver;  // null: the installed one

  std::size_t longest_segment_bytes = 256 * 1024;  // less if the host's segments are shorter
  int most_under_way = 256;  // operations that were enqueued and have not finished

  std::string why = {};  // why device memory is staged, for carrier(); empty: it was requested

  // How long the destructor waits for data of its streams to leave, and then for copies and
  // streams. Memory that may still be in use after that stays until the process ends.
  std::chrono::milliseconds patience{500};
};

// Not collective. Loads the driver. Error kUnavailable with the reason if there is no usable
// device; `host` is then destroyed.
std::unique_ptr<Transport> make_staged(std::unique_ptr<Transport> host,
                                       const StagedSettings& settings = {});

// The same for `rank`. `make_host` makes the transport `name`, and is called only after the device
// is ready: an error of the device is reported while the peers still wait for this rank.
std::unique_ptr<Transport> make_staged(const std::function<std::unique_ptr<Transport>()>& make_host,
                                       std::string_view name, int rank,
                                       const StagedSettings& settings);

}  // namespace kolo::inline v0
