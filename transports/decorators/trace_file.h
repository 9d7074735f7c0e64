// Events of a trace, and the writer of its file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "transports/transport.h"

namespace kolo::inline v0::decorators {

enum class TraceKind : std::uint8_t { kSend, kReceive, kAnswer };

// Times of a segment: requested, available (credit, or its bytes), handed over.
struct TraceEvent {
  Clock::time_point asked;
  Clock::time_point there;
  Clock::time_point done;
  std::uint64_t bytes = 0;
  std::int32_t peer = 0;
  TraceKind kind = TraceKind::kSend;
};

struct TraceLog {
  std::string transport;
  int rank = 0;
  std::vector<TraceEvent> events;
  std::uint64_t left_out = 0;

  void add(const TraceEvent& event);
};

// Writes PATH-rankR.json, or the next free name. Returns the error text; empty on success.
std::string write_trace(const TraceLog& log, const std::string& path) noexcept;

// Returns why files cannot be made beside `path`; empty if they can.
std::string why_not_writable(const std::string& path);

}  // namespace kolo::inline v0::decorators
