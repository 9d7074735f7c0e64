#include "transports/cuda/ipc_imports.h"

#include <fmt/format.h>
#include <algorithm>

#include "transports/error.h"

namespace kolo::inline v0::cuda {

namespace {

bool overlap(const Exported& one, const Exported& other) {
  return one.base - other.base < other.bytes || other.base - one.base < one.bytes;
}

}  // namespace

std::byte* IpcImports::map(const Exported& place, std::size_t bytes, std::uint64_t work) {
  if (place.offset > place.bytes || bytes > place.bytes - place.offset) {
    throw Error(ErrorCode::kProtocol, kNoPeer,
                fmt::format("{} offers {} bytes at {} of an allocation of {} bytes", whose_, bytes,
                            place.offset, place.bytes));
  }
  if (is_same_process_) return reinterpret_cast<std::byte*>(place.base) + place.offset;
  if (std::byte* const mapped = find_open(place, work)) return mapped + place.offset;
  if (is_taken(place)) return nullptr;
  const auto opened =
      device_.open_for({this, work, place.buffer}, place.handle, place.bytes, whose_);
  if (opened.mapped == nullptr) return nullptr;
  open_.push_back({place, opened, work, false});
  return opened.mapped + place.offset;
}

// Null if it is not open. Marks mappings at the same place as freed.
std::byte* IpcImports::find_open(const Exported& place, std::uint64_t work) {
  for (auto open = open_.begin(); open != open_.end(); ++open) {
    if (open->place.buffer != place.buffer || open->is_gone) {
      // Two allocations cannot be at one place, so the older one has been freed.
      open->is_gone |= overlap(open->place, place);
      continue;
    }
    if (open->place.base != place.base || open->place.bytes != place.bytes) {
      throw Error(ErrorCode::kProtocol, kNoPeer,
                  fmt::format("{} offers a part of an allocation of {} bytes by the number of "
                              "another one, of {} bytes",
                              whose_, place.bytes, open->place.bytes));
    }
    if (!device_.use(open->opened.ticket, work)) {
      open_.erase(open);
      return nullptr;
    }
    open->last_work = std::max(open->last_work, work);
    return open->opened.mapped;
  }
  return nullptr;
}

// True if an earlier allocation at this place is still in use. Otherwise ends its mapping.
bool IpcImports::is_taken(const Exported& place) {
  const std::uint64_t done = this->done();
  const auto is_in_the_way = [&place](const Open& open) {
    return open.is_gone && overlap(open.place, place);
  };
  bool is_taken = false;
  for (const Open& open : open_) {
    if (!is_in_the_way(open) || open.last_work <= done) continue;
    if (open.last_work > given()) {
      throw Error(ErrorCode::kProtocol, kNoPeer,
                  fmt::format("{} offers memory at an address that pending work still uses: "
                              "was it freed too early?",
                              whose_));
    }
    is_taken = true;
  }
  if (is_taken) return true;
  std::erase_if(open_, [&](const Open& open) {
    if (!is_in_the_way(open)) return false;
    device_.close(open.opened.ticket);
    return true;
  });
  return false;
}

void IpcImports::forget(std::uint64_t buffer) {
  for (Open& open : open_) open.is_gone |= open.place.buffer == buffer;
}

void IpcImports::finish(std::uint64_t work) {
  done_ = std::max(done_.load(), work);
  close_where_done();
  make_room();
}

// Reads given() before the query: work that is given in between makes the answer false.
std::uint64_t IpcImports::done() const {
  const std::uint64_t done = done_.load();
  const std::uint64_t given = this->given();
  const bool is_given_done = given > done && is_given_done_ && is_given_done_();
  return is_given_done ? given : done;
}

void IpcImports::close_where_done() {
  const bool is_any_gone =
      std::ranges::any_of(open_, [](const Open& open) { return open.is_gone; });
  if (!is_any_gone) return;
  const std::uint64_t done = this->done();
  std::erase_if(open_, [this, done](const Open& open) {
    if (!open.is_gone || open.last_work > done) return false;
    device_.close(open.opened.ticket);
    return true;
  });
}

// Closes the mappings with the oldest work, if that is done, until no more than `most` are open.
void IpcImports::make_room() {
  while (open_.size() > most_) {
    const auto oldest = std::min_element(
        open_.begin(), open_.end(),
        [](const Open& one, const Open& other) { return one.last_work < other.last_work; });
    if (oldest->last_work > done_) return;
    device_.close(oldest->opened.ticket);
    open_.erase(oldest);
  }
}

void IpcImports::close_all() noexcept {
  for (const Open& open : open_) device_.close(open.opened.ticket);
  open_.clear();
}

}  // namespace kolo::inline v0::cuda
