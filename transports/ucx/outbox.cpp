#include "transports/ucx/outbox.h"

namespace kolo::ucx {

Outbox::Outbox(Worker& worker, std::uint32_t token, int rank, std::size_t segment_bytes)
    : worker_(worker),
      stamp_{token, static_cast<std::uint32_t>(rank), 0, 0},
      segment_bytes_(segment_bytes) {}

std::byte* Outbox::slot() {
  Place& place = places_[sent_ % kWindow];
  if (!place.slot) place.slot = allocate_aligned(slot_stride(segment_bytes_));
  return place.slot.get();
}

void Outbox::send_segment(std::span<const std::byte> data, std::uint32_t released) {
  Place& place = places_[sent_ % kWindow];
  place.header = stamp_;
  place.header.number = sent_++;
  place.header.released = released;
  post(Kind::kSegment, place, data);
}

void Outbox::send_note(Kind kind, std::uint32_t released) {
  Letter& note = kind == Kind::kCredit ? credits_[credits_sent_++ % credits_.size()]
                                       : notes_[static_cast<std::size_t>(kind)];
  if (note.is_busy) return;
  note.header = stamp_;
  note.header.number = sent_;
  note.header.released = released;
  post(kind, note, {});
}

void Outbox::give_credit(std::uint32_t released) {
  if (distance(credited_, released) <= distance(credited_, sent_)) credited_ = released;
}

void Outbox::post(Kind kind, Letter& letter, std::span<const std::byte> data) {
  letter.outbox = this;
  letter.is_busy = true;
  ++under_way_;
  ucp_request_param_t param{};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  if (kind == Kind::kHello) {
    // Else UCX asks for the peer's half of an endpoint when a message is first too long for it to
    // be sent without, and who has sent that could not go before the peer has answered.
    param.op_attr_mask |= UCP_OP_ATTR_FIELD_FLAGS;
    param.flags = UCP_AM_SEND_FLAG_REPLY;
  }
  param.cb.send = &Outbox::sent;
  param.user_data = &letter;
  void* const request =
      worker_.ucp().am_send_nbx(endpoint_, static_cast<unsigned>(kind), &letter.header,
                                kHeaderBytes, data.data(), data.size(), &param);
  // What is complete at once is not called back for.
  if (!UCS_PTR_IS_PTR(request)) complete(letter, UCS_PTR_RAW_STATUS(request));
}

void Outbox::complete(Letter& letter, ucs_status_t status) {
  letter.is_busy = false;
  --under_way_;
  if (status != UCS_OK) failure_ = status;
}

void Outbox::sent(void* request, ucs_status_t status, void* letter) {
  auto& of = *static_cast<Letter*>(letter);
  Outbox& outbox = *of.outbox;
  outbox.complete(of, status);
  outbox.worker_.ucp().request_free(request);
}

}  // namespace kolo::ucx
