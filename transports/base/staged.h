// Device memory through a transport that moves host memory: any of this build, or from outside.
//
// What goes out is copied from the device into pinned memory and sent from there, what comes in is
// received into pinned memory and copied to the device, piece by piece, so that a copy, the network
// and the other copy are at work at once. Channel::stream() is added; all else is the host
// transport's, as are its name, its sleep and the news of a peer's death.
//
// A piece is one segment of the host's form, on the wire as well, in the order of the calls; both
// forms may take turns on one channel. So a rank with a device meets one without, that runs the
// same schedule over the plain transport with segments as long (Capabilities::segment_bytes of the
// stream's form).
//
// The copies are given to the device by progress(): a stream waits, and nothing moves, while its
// rank does not ask for any. There can be a very long way from what the host has enqueued to what
// the device has done, and a driver's queue is finite; a host that waited in the driver could not
// make progress. So from `most_under_way` operations on, every call says "not now", reserve and
// view among them.
//
// Cost: up to 4 MiB of pinned host memory for each pair whose stream form is used, from then on; as
// much on the device, where slots or views are used.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "../transport.h"

namespace kolo {

namespace cuda {
class Driver;
}

struct StagedSettings {
  int device = -1;                       // -1: KOLO_CUDA_DEVICE, as settings.h has it
  std::shared_ptr<cuda::Driver> driver;  // null: the installed one

  std::size_t longest_segment_bytes = 256 * 1024;  // less where the host's segments are shorter
  int most_under_way = 256;  // operations that streams have been given and have not done

  std::string why = {};  // that it is staged, for carrier(); empty: as was asked for

  // How long the end waits: of a transport that is destroyed, for what its streams have handed over
  // to leave; then for copies and streams. After that memory that may still be in use stays until
  // the process ends.
  std::chrono::milliseconds patience{500};
};

// Not collective. Wakes the driver; Error kUnavailable, and `host` is gone, where there is no
// device that serves, with the reason.
std::unique_ptr<Transport> make_staged(std::unique_ptr<Transport> host,
                                       const StagedSettings& settings = {});

// The same of `rank`, with a transport of this name that is made, and its peers met, once the
// device has all that it needs: what is wrong with that is said while the peers still wait.
std::unique_ptr<Transport> make_staged(const std::function<std::unique_ptr<Transport>()>& make_host,
                                       std::string_view name, int rank,
                                       const StagedSettings& settings);

}  // namespace kolo
