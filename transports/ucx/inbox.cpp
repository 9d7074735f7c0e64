#include "transports/ucx/inbox.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

namespace kolo::inline v0::ucx {

namespace {

// Shorter segments are copied: that takes less time than to keep UCX's memory and return it.
constexpr std::size_t kWorthKeeping = 512;

// Up to this size one more copy takes less time than the sender's wait.
constexpr std::size_t kFetchedAtOnce = 32 * 1024;

alignas(kSegmentAlignment) constexpr std::byte kNothing{0};

bool is_aligned(const void* memory) {
  return reinterpret_cast<std::uintptr_t>(memory) % kSegmentAlignment == 0;
}

}  // namespace

Inbox::Inbox(Worker& worker, const HostLiveness& liveness, int peer, std::size_t segment_bytes)
    : worker_(worker), liveness_(liveness), peer_(peer), segment_bytes_(segment_bytes) {
  for (Arrival& arrival : arrivals_) arrival.inbox = this;
}

ucs_status_t Inbox::accept(std::uint32_t number, const void* data, std::size_t bytes,
                           std::uint64_t attributes) {
  Arrival& arrival = arrivals_[number % kWindow];
  const bool is_expected = distance(taken_, number) < kWindow && arrival.state == State::kEmpty &&
                           bytes <= segment_bytes_;
  if (!is_expected) {
    is_faulty_ = true;
    return UCS_OK;
  }
  arrival.bytes = bytes;
  const bool is_next = number == taken_;
  if ((attributes & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0) {
    arrival.state = State::kOffered;
    arrival.held = const_cast<void*>(data);
    if (is_next && !place_.empty() && place_.size() == bytes) {
      fetch(arrival, place_.data());
    } else if ((takes_views_ || bytes <= kFetchedAtOnce) && !is_closed_ && has_memory(arrival)) {
      fetch(arrival, own_memory(arrival));
    }
    return UCS_INPROGRESS;
  }
  if (is_next && !place_.empty() && place_.size() == bytes) {
    std::memcpy(place_.data(), data, bytes);
    arrival.state = State::kPlaced;
    return UCS_OK;
  }
  arrival.state = State::kWhole;
  if ((attributes & UCP_AM_RECV_ATTR_FLAG_DATA) != 0 && bytes >= kWorthKeeping &&
      is_aligned(data)) {
    arrival.held = const_cast<void*>(data);
    arrival.data = static_cast<const std::byte*>(data);
    return UCS_INPROGRESS;
  }
  arrival.data = &kNothing;
  if (bytes == 0) return UCS_OK;
  if (!has_memory(arrival)) {
    arrival.state = State::kDropped;
    failure_ = UCS_ERR_NO_MEMORY;
    return UCS_OK;
  }
  std::byte* const copy = own_memory(arrival);
  std::memcpy(copy, data, bytes);
  arrival.data = copy;
  return UCS_OK;
}

std::byte* Inbox::own_memory(Arrival& arrival) {
  if (!arrival.own) arrival.own = allocate_aligned(slot_stride(segment_bytes_));
  return arrival.own.get();
}

// For callbacks of UCX, which must not throw: an offer can wait until its receiver asks for it.
bool Inbox::has_memory(Arrival& arrival) noexcept {
  try {
    own_memory(arrival);
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

void Inbox::fetch(Arrival& arrival, std::byte* into) {
  arrival.state = State::kFetching;
  arrival.data = into;
  arrival.is_direct = into != arrival.own.get();
  ucp_request_param_t param{};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  param.cb.recv_am = &Inbox::fetch_is_done;
  param.user_data = &arrival;
  void* const offer = std::exchange(arrival.held, nullptr);
  void* const request =
      worker_.ucp().am_recv_data_nbx(worker_.get(), offer, into, arrival.bytes, &param);
  if (!UCS_PTR_IS_PTR(request)) fetched(arrival, UCS_PTR_RAW_STATUS(request));
}

// UCX may read the peer's memory itself. If the peer has ended, it may have reused that memory. The
// data are valid if the peer ended in order, since then all had been fetched.
void Inbox::fetched(Arrival& arrival, ucs_status_t status) {
  if (status != UCS_OK) {
    failure_ = status;
  } else if (end_ || liveness_.is_alive(peer_)) {
    trust(arrival);
  } else {
    arrival.state = State::kDoubtful;
  }
}

void Inbox::believe(std::uint32_t end) {
  end_ = end;
  for (Arrival& arrival : arrivals_) {
    if (arrival.state == State::kDoubtful) trust(arrival);
  }
}

bool Inbox::has_all(std::uint32_t end) const {
  if (distance(taken_, end) > kWindow) return false;
  for (std::uint32_t number = taken_; number != end; ++number) {
    const State state = arrivals_[number % kWindow].state;
    if (state != State::kWhole && state != State::kPlaced) return false;
  }
  return true;
}

void Inbox::fetch_is_done(void* request, ucs_status_t status, std::size_t /*bytes*/,
                          void* arrival) {
  auto& of = *static_cast<Arrival*>(arrival);
  of.inbox->fetched(of, status);
  of.inbox->worker_.note_news();
  of.inbox->worker_.ucp().request_free(request);
}

Inbox::Taken Inbox::view(std::size_t bytes) {
  Arrival& arrival = next();
  takes_views_ = true;
  if (arrival.state == State::kEmpty) return Taken::kNotYet;
  if (arrival.state == State::kOffered) fetch(arrival, own_memory(arrival));
  if (arrival.state == State::kWhole && arrival.bytes < bytes) lengthen(arrival, bytes);
  if (arrival.state == State::kWhole) return Taken::kYes;
  return failure_ == UCS_OK ? Taken::kNotYet : Taken::kFailed;
}

void Inbox::lengthen(Arrival& arrival, std::size_t bytes) {
  std::byte* const own = own_memory(arrival);
  if (own != arrival.data && arrival.bytes > 0) std::memcpy(own, arrival.data, arrival.bytes);
  std::memset(own + arrival.bytes, 0, bytes - arrival.bytes);
  arrival.data = own;
  arrival.bytes = bytes;
}

void Inbox::release() {
  Arrival& arrival = next();
  if (arrival.held != nullptr)
    worker_.ucp().am_data_release(worker_.get(), std::exchange(arrival.held, nullptr));
  arrival.state = State::kEmpty;
  ++taken_;
}

Inbox::Taken Inbox::receive(std::span<std::byte> into) {
  Arrival& arrival = next();
  takes_views_ = false;
  if (arrival.state == State::kEmpty) {
    place_ = into;
    return Taken::kNotYet;
  }
  if (arrival.state == State::kOffered)
    fetch(arrival,
          !into.empty() && arrival.bytes == into.size() ? into.data() : own_memory(arrival));
  if (arrival.state == State::kWhole && arrival.bytes < into.size()) lengthen(arrival, into.size());
  if (arrival.state == State::kWhole && !into.empty())
    std::memcpy(into.data(), arrival.data, into.size());
  if (arrival.state == State::kWhole || arrival.state == State::kPlaced) {
    place_ = {};
    release();
    return Taken::kYes;
  }
  return failure_ == UCS_OK ? Taken::kNotYet : Taken::kFailed;
}

bool Inbox::has_requests() const {
  return std::any_of(arrivals_.begin(), arrivals_.end(),
                     [](const Arrival& arrival) { return arrival.state == State::kFetching; });
}

void Inbox::drop() noexcept {
  for (Arrival& arrival : arrivals_) {
    if (arrival.held != nullptr)
      worker_.ucp().am_data_release(worker_.get(), std::exchange(arrival.held, nullptr));
  }
}

}  // namespace kolo::inline v0::ucx
