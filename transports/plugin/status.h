// Return values of an external transport's functions, converted to true, false or an Error.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "transports/plugin/load.h"

namespace kolo::inline v0::plugin {

// An empty kolo_error, to be filled by a function of the table.
kolo_error no_error();

// One object per channel and per transport, used by the thread that owns these.
class StatusChecker {
 public:
  StatusChecker(const Plugin& plugin, int rank)
      : plugin_(plugin), rank_(rank), error_(no_error()) {}

  const kolo_plugin& table() const { return plugin_.table; }
  const Plugin& plugin() const { return plugin_; }
  int rank() const { return rank_; }

  // Pass it to a function whose status then goes to done().
  kolo_error* error() { return &error_; }

  // True if the function succeeded; false for "not now". Throws Error with the function's code and
  // peer, and a text that names the rank, the peer and the transport. Error kProtocol for an
  // invalid status.
  bool done(kolo_status status) {
    if (status != KOLO_DONE && status != KOLO_NOT_NOW) [[unlikely]]
      fail(status);
    return status == KOLO_DONE;
  }

  // Error kProtocol: the transport has broken the contract of its table.
  [[noreturn]] void fail_as_broken(std::string_view what) const;

 private:
  [[noreturn]] void fail(kolo_status status);

  const Plugin& plugin_;
  const int rank_;
  kolo_error error_;
};

// Text from a transport as one line of printable characters; `text` may contain any bytes.
std::string one_line(std::string_view text);

// std::invalid_argument, with the transport's name, unless `bytes` is a multiple of 64 and at most
// 1 GiB, as for KOLO_SEGMENT_BYTES.
void require_segment_bytes(const Plugin& plugin, std::uint64_t bytes);

// The transport's channel to `peer`; std::invalid_argument if it is null.
kolo_channel* channel_to(const Plugin& plugin, kolo_transport* transport, int peer);

}  // namespace kolo::inline v0::plugin
