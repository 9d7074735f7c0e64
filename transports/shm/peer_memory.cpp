#include "transports/shm/peer_memory.h"

#include <sys/uio.h>
#include <cerrno>
#include <random>
#include <utility>

namespace kolo::inline v0::shm {

// The value is random, so that a wrong process with the same pid does not have it there.
ReadProbe own_read_probe() {
  static const std::uint64_t value = [] {
    std::random_device random;
    return std::uint64_t{random()} << 32 | random();
  }();
  return {reinterpret_cast<std::uintptr_t>(&value), value};
}

bool PeerMemory::can_read(const ReadProbe& trial) noexcept {
  std::uint64_t value = 0;
  is_readable_ = process_ > 0 && trial.address != 0 &&
                 read(trial.address, std::as_writable_bytes(std::span(&value, 1))) == 0 &&
                 value == trial.value;
  return is_readable_;
}

int PeerMemory::read(std::uint64_t address, std::span<std::byte> into) const noexcept {
  while (!into.empty()) {
    const iovec here{into.data(), into.size()};
    const iovec there{reinterpret_cast<void*>(static_cast<std::uintptr_t>(address)), into.size()};
    const auto got = ::process_vm_readv(process_, &here, 1, &there, 1, 0);
    if (got <= 0) return got == 0 ? EFAULT : errno;
    address += static_cast<std::uint64_t>(got);
    into = into.subspan(static_cast<std::size_t>(got));
  }
  return 0;
}

void PeerMemory::map(std::uint64_t region, posix::Descriptor descriptor, std::size_t bytes) {
  posix::SharedMemory memory(std::move(descriptor), bytes, posix::Pages::kPresent);
  memory.forget_descriptor();
  regions_.insert_or_assign(region, std::move(memory));
}

std::byte* PeerMemory::find(const Offer& offer, std::size_t bytes) const {
  const auto found = regions_.find(offer.region);
  if (found == regions_.end()) return nullptr;
  const std::span<std::byte> memory = found->second.bytes();
  if (bytes > memory.size() || offer.address > memory.size() - bytes) return nullptr;
  return memory.data() + offer.address;
}

}  // namespace kolo::inline v0::shm
