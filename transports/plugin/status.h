// What a function of a transport from outside returned, as kolo says it: true, false, or an Error.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "transports/plugin/load.h"

namespace kolo::plugin {

// A kolo_error as its filler gets it.
kolo_error no_error();

// One for each channel and each transport, used by the thread that has them.
class StatusChecker {
 public:
  StatusChecker(const Plugin& plugin, int rank)
      : plugin_(plugin), rank_(rank), error_(no_error()) {}

  const kolo_plugin& table() const { return plugin_.table; }
  const Plugin& plugin() const { return plugin_; }
  int rank() const { return rank_; }

  // To be passed to a function whose status is then given to done().
  kolo_error* error() { return &error_; }

  // Whether it did what it was asked; false for "not now". Error with the code and the peer that it
  // said, and a text that names the rank, the peer and the transport; kProtocol where it returned
  // what is no status.
  bool done(kolo_status status) {
    if (status != KOLO_DONE && status != KOLO_NOT_NOW) [[unlikely]]
      fail(status);
    return status == KOLO_DONE;
  }

  // Error kProtocol: it has broken the contract of its table.
  [[noreturn]] void fail_as_broken(std::string_view what) const;

 private:
  [[noreturn]] void fail(kolo_status status);

  const Plugin& plugin_;
  const int rank_;
  kolo_error error_;
};

// What a transport's function says of itself, on one line and visible: it may be any bytes.
std::string one_line(std::string_view text);

// std::invalid_argument, with the transport's name, where no segment can be so long: a multiple of
// 64, 1 GiB at most, as KOLO_SEGMENT_BYTES.
void require_segment_bytes(const Plugin& plugin, std::uint64_t bytes);

// The transport's channel to `peer`; std::invalid_argument where it gives none.
kolo_channel* channel_to(const Plugin& plugin, kolo_transport* transport, int peer);

}  // namespace kolo::plugin
