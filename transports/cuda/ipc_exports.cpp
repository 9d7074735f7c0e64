#include "transports/cuda/ipc_exports.h"

#include <fmt/format.h>
#include <algorithm>

#include "transports/error.h"

namespace kolo::inline v0::cuda {

std::optional<Exported> IpcExports::find(const void* data, std::size_t bytes) {
  const std::uint64_t buffer = device_.number_at(data);
  auto known = std::find_if(known_.begin(), known_.end(), [buffer](const Known& entry) {
    return entry.pointer.buffer == buffer;
  });
  if (buffer == 0 || known == known_.end()) {
    const Pointer pointer = device_.look_at(data);
    why_not_ = pointer.why_unexported;
    if (why_not_.empty() && pointer.device != device_.number()) {
      why_not_ = fmt::format("it is on device {}, and this rank works on {}", pointer.device,
                             device_.describe());
    }
    if (!why_not_.empty()) return std::nullopt;
    try {
      known_.push_back({pointer, device_.export_memory(pointer.base)});
    } catch (const Error& error) {
      why_not_ = error.what();
      return std::nullopt;
    }
    known = std::prev(known_.end());
  }
  const Pointer& pointer = known->pointer;
  const auto offset = static_cast<std::size_t>(static_cast<const std::byte*>(data) - pointer.base);
  if (offset > pointer.bytes || bytes > pointer.bytes - offset) {
    why_not_ = "it goes beyond the end of its allocation";
    return std::nullopt;
  }
  return Exported{buffer, reinterpret_cast<std::uint64_t>(pointer.base), pointer.bytes, offset,
                  known->handle};
}

void IpcExports::look_for_gone() {
  constexpr std::size_t kRemembered = 1024;
  if (known_.empty()) return;
  next_look_ = (next_look_ + 1) % known_.size();
  const Pointer looked = known_[next_look_].pointer;
  if (device_.number_at(looked.base) == looked.buffer) return;
  known_.erase(known_.begin() + static_cast<std::ptrdiff_t>(next_look_));
  gone_.push_back(looked.buffer);
  ++found_gone_;
  if (gone_.size() > kRemembered) gone_.pop_front();
}

std::uint64_t IpcExports::next_gone(std::uint64_t& seen) const {
  if (seen == found_gone_) return 0;
  seen = std::max(seen, found_gone_ - gone_.size());
  return gone_[gone_.size() - static_cast<std::size_t>(found_gone_ - seen++)];
}

}  // namespace kolo::inline v0::cuda
