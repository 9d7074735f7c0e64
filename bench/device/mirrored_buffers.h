// Buffers of the host's, and for each of them a twin on the device, where a library works while the
// host fills and checks its own.
//
// Threading and failures: as of device/memory.h.
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
    kPinned,  // as long as they are placed
  };

  explicit MirroredBuffers(std::shared_ptr<DeviceMemory> memory, Hosts hosts = Hosts::kPlain);

  // In the place of those before, of which a twin that is long enough stays. One that is outgrown
  // is freed with all others, at the end: peers may have it open.
  void place(std::span<const std::span<std::byte>> hosts);

  // The first bytes of each, `most` of them at most. Return when they are there.
  void bring(std::size_t most = std::numeric_limits<std::size_t>::max());
  void fetch(std::size_t most = std::numeric_limits<std::size_t>::max());

  // The byte of a twin that belongs to the host's; null of null. std::invalid_argument for what
  // was not placed.
  std::byte* of(const void* pointer) const;

  // Which of the placed buffers that is in, and where there.
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
    std::size_t bytes = 0;  // of the device's
  };

  void place(MirroredBuffer& twin, std::span<std::byte> host);

  std::shared_ptr<DeviceMemory> memory_;
  Hosts hosts_;
  std::vector<MirroredBuffer> mirrors_;
  std::vector<std::shared_ptr<std::byte[]>> outgrown_;
};

}  // namespace kolo::bench
