// What a transport that offers none of the optional parts answers.
#include "transports/transport.h"

#include "transports/check.h"

namespace kolo {

namespace {

[[noreturn]] void fail_answer() {
  fail_check("this channel takes no answers: ask Capabilities::can_answer first");
}

}  // namespace

std::byte* Channel::view_to_answer(std::size_t) { fail_answer(); }
void Channel::answer() { fail_answer(); }
const std::byte* Channel::view_answer(std::size_t) { fail_answer(); }
void Channel::release_answer() { fail_answer(); }

std::byte* Channel::map(const MemoryHandle&) { return nullptr; }

MemoryHandle Transport::export_memory(const void*, std::size_t) { return {}; }

}  // namespace kolo
