// What a rank publishes for the others of its job: where it is to be called, and where its slots
// are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "transports/cuda/driver.h"

namespace kolo::cuda {

// Words of one line each.
struct EndpointAddress {
  std::string why;          // it cannot: nothing else counts
  std::string process;      // equal for ranks of one process
  std::string uuid;         // of its device
  std::string socket;       // where it listens
  std::uint64_t token = 0;  // who calls must know it
  std::size_t segment_bytes = 0;
  int slots = 0;
  int device = 0;
  std::uint64_t ring = 0;  // where its slots begin, in its process
  IpcHandle handle{};      // of the same, for other processes
};

std::string to_text(const EndpointAddress& card);

// Error kProtocol where `text`, of `rank`, is torn or another version's.
EndpointAddress address_from_text(const std::string& text, int rank);

}  // namespace kolo::cuda
