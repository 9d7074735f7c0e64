// Whether the ranks' devices reach one another.
#pragma once

#include <span>
#include <string>

#include "transports/cuda/device.h"

namespace kolo::cuda {

// A line for the other ranks: the device's uuid, and those of the devices that it reaches, itself
// first. Error kSystem.
std::string describe_peer_access(Driver& driver, const Device& device);

// Of these lines, by rank: empty where every rank has a device and it reaches all the others, else
// who does not reach whom, the same on every rank: "rank 2 has no device".
std::string why_no_peer_access(std::span<const std::string> lines);

}  // namespace kolo::cuda
