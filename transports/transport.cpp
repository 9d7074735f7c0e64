// Defaults of the optional functions of transports, channels and stream channels.
#include "transports/transport.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "transports/base/check.h"
#include "transports/base/copy_words.h"
#include "transports/posix/host/cgroup.h"

namespace kolo::inline v0 {

namespace {

[[noreturn]] void fail_answer() {
  fail_check("this channel takes no answers: ask Capabilities::can_answer first");
}

[[noreturn]] void fail_send() {
  fail_check("this channel's stream form has only slots: ask StreamChannel::can_send first");
}

}  // namespace

bool Channel::send_copy(std::span<const std::byte> data, unsigned flags) {
  std::byte* const slot = reserve(data.size());
  if (slot == nullptr) return false;
  if (!data.empty()) std::memcpy(slot, data.data(), data.size());
  commit(flags);
  return true;
}

bool Channel::send_gathered(std::span<const std::byte> head, std::span<const std::byte> body,
                            std::size_t bytes, unsigned flags) {
  check_pieces(head, body.size(), bytes);
  std::byte* const slot = reserve(bytes);
  if (slot == nullptr) return false;
  copy_words(slot, head.data(), head.size() / 8);
  copy_few(slot + head.size(), body.data(), body.size());
  commit(flags);
  return true;
}

bool Channel::send_both(std::span<const std::byte>, std::size_t, std::span<const std::byte>,
                        unsigned) {
  return false;
}
Both Channel::view_both(std::size_t, std::size_t) { return {}; }
void Channel::release_both() { check(false, "release_both() without a view of two segments"); }

std::byte* Channel::view_to_answer(std::size_t) { fail_answer(); }
void Channel::answer() { fail_answer(); }
const std::byte* Channel::view_answer(std::size_t) { fail_answer(); }
void Channel::release_answer() { fail_answer(); }

std::string Channel::why_no_stream() const {
  return "this transport moves only host memory: make_staged (staged.h) adds device memory, and "
         "cuda_ipc connects the devices of one host";
}

std::string StreamChannel::why_not_captured() const {
  return "hosts carry its segments, but a graph is launched again without its host";
}

bool StreamChannel::send(void*, std::span<const std::byte>, unsigned) { fail_send(); }
bool StreamChannel::receive(void*, std::span<std::byte>, unsigned) { fail_send(); }
const std::byte* StreamChannel::view_sent(void*, std::size_t) { fail_send(); }
void StreamChannel::drain(void*) {}

std::shared_ptr<std::byte[]> Transport::allocate(std::size_t bytes) {
  constexpr std::align_val_t page{4096};
  const auto claim = posix::claim_memory(bytes, "for the caller");
  auto* const memory =
      static_cast<std::byte*>(::operator new[](std::max<std::size_t>(bytes, 1), page));
  std::memset(memory, 0, bytes);
  return {memory, [](std::byte* freed) { ::operator delete[](freed, page); }};
}

}  // namespace kolo::inline v0
