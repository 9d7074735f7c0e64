#include "transports/decorators/decorate.h"

#include <fmt/format.h>
#include <stdexcept>
#include <utility>

#include "transports/base/topology.h"
#include "transports/base/transport_kind.h"
#include "transports/decorators/fault.h"
#include "transports/decorators/shape.h"
#include "transports/decorators/trace.h"
#include "transports/posix/host/identity.h"
#include "transports/rendezvous.h"
#include "transports/store/all_gather.h"

namespace kolo::inline v0 {

namespace {

// Longest segment of a shaped network if the user set no segment length.
constexpr std::size_t kLongestSegment = std::size_t{8} << 20;

// Finds every rank's host, and the ranks that share this rank's monotonic clock.
ShapeSurroundings find_surroundings(const TransportRequest& request) {
  const auto store = prefixed(request.store, "shape/");
  ShapeSurroundings surroundings;
  surroundings.hosts = topology_of(request)->hosts;
  if (request.segment_bytes == 0) surroundings.longest_segment_bytes = kLongestSegment;
  const std::string own = posix::clock_identity();
  for (const std::string& host : exchange(*store, request.rank, request.size, "clock", own,
                                          request.deadline, "compare their clocks")) {
    surroundings.has_same_clock.push_back(host == own);
  }
  return surroundings;
}

template <typename Make>
std::unique_ptr<Transport> named(const char* variable, const std::string& text, Make make) {
  try {
    return make();
  } catch (const std::invalid_argument& error) {
    throw std::invalid_argument(fmt::format("{}='{}': {}", variable, text, error.what()));
  }
}

}  // namespace

std::unique_ptr<Transport> decorate(std::unique_ptr<Transport> inner,
                                    const TransportRequest& request) {
  if (!request.shape.empty()) {
    inner = named("KOLO_SHAPE", request.shape, [&] {
      const Shape shape = parse_shape(request.shape);
      check_shape(shape, request.size);
      return make_shaped(std::move(inner), shape, find_surroundings(request));
    });
  }
  if (!request.fault.empty()) {
    inner = named("KOLO_FAULT", request.fault,
                  [&] { return make_faulty(std::move(inner), parse_faults(request.fault)); });
  }
  if (!request.trace.empty()) inner = make_traced(std::move(inner), request.trace, request.log);
  return inner;
}

}  // namespace kolo::inline v0
