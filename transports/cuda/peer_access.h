// Check whether the ranks' devices can access one another.
#pragma once

#include <span>
#include <string>

#include "transports/cuda/device.h"

namespace kolo::inline v0::cuda {

// Line for the other ranks: the uuids of this device and of the devices that it can access. Error
// kSystem.
std::string describe_peer_access(Driver& driver, const Device& device);

// Checks these lines, by rank. Empty if every rank has a device that can access all the others;
// else the reason, the same on every rank: "rank 2 has no device".
std::string why_no_peer_access(std::span<const std::string> lines);

}  // namespace kolo::inline v0::cuda
