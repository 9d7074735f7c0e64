#include "transports/ucx/outbox.h"

#include <cstring>
#include <utility>

namespace kolo::inline v0::ucx {

namespace {

// UCX sends segments up to this size eagerly in any case.
constexpr std::size_t kNeverAskedFor = 1024;

}  // namespace

Outbox::Outbox(Worker& worker, std::uint32_t token, int rank, std::size_t segment_bytes)
    : worker_(worker),
      token_(token),
      rank_(static_cast<std::uint32_t>(rank)),
      segment_bytes_(segment_bytes) {}

std::byte* Outbox::slot() {
  Place& next = place(sent_);
  if (!next.slot) next.slot = allocate_aligned(slot_stride(segment_bytes_));
  return next.slot.get();
}

void Outbox::send_segment(std::span<const std::byte> data, std::uint32_t released) {
  Place& next = place(sent_);
  write(next, stamped(sent_, released));
  if (held_bytes_ > 0) {
    const Place& held = place(sent_ - 1);
    std::memcpy(next.header.data() + kHeaderBytes, held.header.data() + kHeaderBytes, held_bytes_);
    next.header_bytes += held_bytes_;
    held_bytes_ = 0;
  }
  ++sent_;
  post(Kind::kSegment, next, data);
}

void Outbox::hold(std::span<const std::byte> data) {
  std::memcpy(place(sent_).header.data() + kHeaderBytes, data.data(), data.size());
  held_bytes_ = data.size();
  ++sent_;
}

void Outbox::send_held(std::uint32_t released) {
  Place& held = place(sent_ - 1);
  write(held, stamped(sent_ - 1, released));
  const std::size_t bytes = std::exchange(held_bytes_, 0);
  post(Kind::kSegment, held, {held.header.data() + kHeaderBytes, bytes});
}

void Outbox::send_note(Kind kind, std::uint32_t released) {
  PendingMessage& note = kind == Kind::kCredit ? credits_[credits_sent_++ % credits_.size()]
                                               : notes_[static_cast<std::size_t>(kind)];
  if (note.is_busy) return;
  write(note, stamped(sent_, released));
  post(kind, note, {});
}

void Outbox::send_probe(std::uint32_t released) {
  if (probe_.is_busy) return;
  write(probe_, stamped(sent_, released));
  probed_ = sent_;
  post(Kind::kCredit, probe_, {});
}

void Outbox::give_credit(std::uint32_t released) {
  if (distance(credited_, released) <= distance(credited_, sent_)) credited_ = released;
}

void Outbox::post(Kind kind, PendingMessage& letter, std::span<const std::byte> data) {
  letter.outbox = this;
  letter.is_busy = true;
  ++under_way_;
  ucp_request_param_t param{};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  if (kind == Kind::kHello) {
    // Requests the reply endpoint now. Otherwise UCX requests it before the first message that is
    // too long to be sent without it, and the sender would then depend on the peer's progress.
    param.op_attr_mask |= UCP_OP_ATTR_FIELD_FLAGS;
    param.flags = UCP_AM_SEND_FLAG_REPLY;
  } else if (data.size() > kNeverAskedFor && data.size() <= eager_bytes_) {
    param.op_attr_mask |= UCP_OP_ATTR_FIELD_FLAGS;
    param.flags = UCP_AM_SEND_FLAG_EAGER;
  }
  param.cb.send = &Outbox::sent;
  param.user_data = &letter;
  void* const request =
      worker_.ucp().am_send_nbx(endpoint_, static_cast<unsigned>(kind), letter.header.data(),
                                letter.header_bytes, data.data(), data.size(), &param);
  // If the send completes at once, UCX does not call back.
  if (!UCS_PTR_IS_PTR(request)) complete(letter, UCS_PTR_RAW_STATUS(request));
}

void Outbox::complete(PendingMessage& letter, ucs_status_t status) {
  letter.is_busy = false;
  --under_way_;
  if (status != UCS_OK) failure_ = status;
  if (&letter == &probe_ && status == UCS_OK) left_ = probed_;
}

void Outbox::sent(void* request, ucs_status_t status, void* letter) {
  auto& of = *static_cast<PendingMessage*>(letter);
  Outbox& outbox = *of.outbox;
  outbox.complete(of, status);
  outbox.worker_.note_news();
  outbox.worker_.ucp().request_free(request);
}

}  // namespace kolo::inline v0::ucx
