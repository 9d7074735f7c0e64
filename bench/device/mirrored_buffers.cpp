#include "bench/device/mirrored_buffers.h"

#include <algorithm>
#include <utility>

#include "transports/base/check.h"

namespace kolo::bench {

MirroredBuffers::MirroredBuffers(std::shared_ptr<DeviceMemory> memory, Hosts hosts)
    : memory_(std::move(memory)), hosts_(hosts) {}

void MirroredBuffers::place(std::span<const std::span<std::byte>> hosts) {
  mirrors_.resize(std::max(mirrors_.size(), hosts.size()));
  for (std::size_t i = 0; i < mirrors_.size(); ++i)
    place(mirrors_[i], i < hosts.size() ? hosts[i] : std::span<std::byte>());
}

void MirroredBuffers::place(MirroredBuffer& twin, std::span<std::byte> host) {
  if (twin.host.data() == host.data() && twin.host.size() == host.size()) return;
  twin.pinned = nullptr;
  twin.host = host;
  if (host.empty()) return;
  if (hosts_ == Hosts::kPinned) twin.pinned = memory_->pin(host);
  if (twin.bytes >= host.size()) return;
  if (twin.device != nullptr) outgrown_.push_back(std::move(twin.device));
  twin.bytes = 0;
  twin.device = memory_->allocate(host.size());
  twin.bytes = host.size();
}

void MirroredBuffers::bring(std::size_t most) {
  for (const MirroredBuffer& twin : mirrors_) {
    const std::size_t bytes = std::min(twin.host.size(), most);
    if (bytes > 0) memory_->copy(twin.device.get(), twin.host.data(), bytes);
  }
  memory_->wait();
}

void MirroredBuffers::fetch(std::size_t most) {
  for (const MirroredBuffer& twin : mirrors_) {
    const std::size_t bytes = std::min(twin.host.size(), most);
    if (bytes > 0) memory_->copy(twin.host.data(), twin.device.get(), bytes);
  }
  memory_->wait();
}

MirroredBuffers::Place MirroredBuffers::find(const void* pointer) const {
  const auto* const place = static_cast<const std::byte*>(pointer);
  for (std::size_t i = 0; i < mirrors_.size(); ++i) {
    const std::span<std::byte> host = mirrors_[i].host;
    const bool is_in = !host.empty() && place >= host.data() && place < host.data() + host.size();
    if (is_in) return {i, static_cast<std::size_t>(place - host.data())};
  }
  check(false, "a buffer that was not placed has no mirror on the device");
  return {};
}

std::byte* MirroredBuffers::of(const void* pointer) const {
  if (pointer == nullptr) return nullptr;
  const Place place = find(pointer);
  return mirrors_[place.buffer].device.get() + place.offset;
}

}  // namespace kolo::bench
