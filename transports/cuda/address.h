// Endpoint address of a rank, published in the store: its socket and its slots.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "transports/cuda/driver.h"

namespace kolo::inline v0::cuda {

// Each text is one line.
struct EndpointAddress {
  std::string why;          // why the rank cannot use cuda_ipc; not empty: no other field counts
  std::string process;      // equal for ranks of one process
  std::string uuid;         // of the device
  std::string socket;       // where the rank listens
  std::uint64_t token = 0;  // a connecting rank must send it
  std::size_t segment_bytes = 0;
  int slots = 0;
  int device = 0;
  std::uint64_t ring = 0;  // address of the slots in the rank's process
  IpcHandle handle{};      // of the slots, for other processes
};

std::string to_text(const EndpointAddress& address);

// Error kProtocol where `text`, of `rank`, is torn or another version's.
EndpointAddress address_from_text(const std::string& text, int rank);

}  // namespace kolo::inline v0::cuda
