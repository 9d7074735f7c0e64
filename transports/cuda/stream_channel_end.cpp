// End of a stream channel: a peer that closed or died, and this rank's own close.
#include <utility>

#include "transports/cuda/stream_channel.h"

namespace kolo::inline v0::cuda {

// A closed or dead peer writes no more words. If all awaited words have arrived, the streams of
// this rank finish without it.
void DeviceChannel::look_after_peer() {
  if (is_closed_) return;
  const bool is_gone = link_.own->is_closing.load(std::memory_order_acquire) != 0 ||
                       is_peer_dead_.load(std::memory_order_acquire);
  if (!is_gone) return;
  const auto closing = static_cast<Closing>(link_.own->is_closing.load(std::memory_order_acquire));
  if (captured_.is_used() && captured_.is_hopeless(closing == Closing::kDone))
    fail_if_lost("replay with", true);
  if (is_broken_.load()) fail_if_lost("go on with", true);
  if (!batches_.is_begun() && has_finished()) {
    if (!captured_.is_used()) unmap();
    return;
  }
  fail_if_lost("go on with", lacks_arrived(waits_for_arrived_) || lacks_freed(waits_for_freed_));
}

bool DeviceChannel::is_hopeless() const noexcept {
  const auto closing = static_cast<Closing>(link_.own->is_closing.load(std::memory_order_acquire));
  if (closing == Closing::kNot && !is_peer_dead_.load(std::memory_order_acquire)) return false;
  return lacks_arrived(waits_for_arrived_) || lacks_freed(waits_for_freed_) ||
         (captured_.is_used() && captured_.is_hopeless(closing == Closing::kDone));
}

void DeviceChannel::tell_of_loss(int lost) noexcept {
  link_.theirs->lost.store(static_cast<std::uint32_t>(lost) + 1, std::memory_order_release);
}

void DeviceChannel::break_off() noexcept {
  is_broken_.store(true);
  free_streams();
}

bool DeviceChannel::is_peer_gone() const {
  return is_peer_dead_.load(std::memory_order_acquire) ||
         link_.own->has_closed.load(std::memory_order_acquire) != 0;
}

void DeviceChannel::close(bool is_all_done) noexcept {
  if (std::exchange(is_closed_, true)) return;
  link_.theirs->is_closing.store(
      static_cast<std::uint32_t>(is_all_done ? Closing::kDone : Closing::kAborted),
      std::memory_order_release);
  batches_.close();
}

void DeviceChannel::free_streams() noexcept {
  link_.own->arrived.store(kReleased, std::memory_order_release);
  link_.own->freed.store(kReleased, std::memory_order_release);
  captured_.free_streams();
}

void DeviceChannel::unmap() noexcept {
  if (std::exchange(is_unmapped_, true)) return;
  imports_.close_all();
  if (link_.mapping != nullptr) device_.close(link_.mapping);
  device_.after_frees(
      [theirs = link_.theirs] { theirs->has_closed.store(1, std::memory_order_release); });
}

}  // namespace kolo::inline v0::cuda
