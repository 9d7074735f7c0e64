// Host buffers, each with a mirror on the device. A library works on the mirror, and the host fills
// and checks its own buffer.
//
// Threading and failures: as in device/memory.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "bench/device/memory.h"

namespace kolo::bench {

class MirroredBuffers {
 public:
  enum class Hosts : std::uint8_t {
    kPlain,
    kPinned,  // pinned while they are placed
  };

  explicit MirroredBuffers(std::shared_ptr<DeviceMemory> memory, Hosts hosts = Hosts::kPlain);

  // Replaces the previous host buffers. A mirror that is long enough is kept. A mirror that is too
  // short is freed only at the end, as peers may have it open.
  void place(std::span<const std::span<std::byte>> hosts);

  // Copies the first bytes of each buffer, at most `most`: bring to the device, fetch to the host.
  // Both return when the copies are done.
  void bring(std::size_t most = std::numeric_limits<std::size_t>::max());
  void fetch(std::size_t most = std::numeric_limits<std::size_t>::max());

  // The mirror's byte for a host byte; null for null. std::invalid_argument if it was not placed.
  std::byte* of(const void* pointer) const;

  // The placed buffer that contains the pointer, and the offset in it.
  struct Place {
    std::size_t buffer = 0;
    std::size_t offset = 0;
  };
  Place find(const void* pointer) const;

 private:
  struct MirroredBuffer {
    std::span<std::byte> host;
    std::shared_ptr<void> pinned;
    std::shared_ptr<std::byte[]> device;
    std::size_t bytes = 0;  // of the mirror
  };

  void place(MirroredBuffer& twin, std::span<std::byte> host);

  std::shared_ptr<DeviceMemory> memory_;
  Hosts hosts_;
  std::vector<MirroredBuffer> mirrors_;
  std::vector<std::shared_ptr<std::byte[]>> outgrown_;
};

}  // namespace kolo::bench
