#include "transports/posix/descriptor.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>
#include <array>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <system_error>

#include "transports/error.h"

namespace kolo::inline v0::posix {

namespace {

// The descriptors of not_inherited(), a bit each. Global, since fork() concerns the whole process
// and its handler takes no argument. Without a lock, since the child's handler must not wait for a
// thread that the child lacks. A descriptor beyond kMost is inherited.
constexpr int kMost = 1 << 20;
constexpr int kBits = 64;
constinit std::array<std::atomic<std::uint64_t>, kMost / kBits> not_inherited_bits{};
constinit std::atomic<int> used_words{0};

void replace_in_child() {
  int unused = -1;
  for (int word = 0; word < used_words; ++word) {
    auto& bits = not_inherited_bits[static_cast<std::size_t>(word)];
    for (std::uint64_t left = bits.exchange(0); left != 0; left &= left - 1) {
      const int descriptor = word * kBits + std::countr_zero(left);
      if (unused < 0) {
        ::close(descriptor);  // first, as there may be no free one; the number is free then
        unused = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
      }
      if (unused != descriptor) ::dup3(unused, descriptor, O_CLOEXEC);
    }
  }
}

void set_bit(int descriptor) {
  // If registration fails for lack of memory, children keep the descriptors.
  [[maybe_unused]] static const int registered =
      ::pthread_atfork(nullptr, nullptr, replace_in_child);
  const int word = descriptor / kBits;
  not_inherited_bits[static_cast<std::size_t>(word)] |= std::uint64_t{1} << descriptor % kBits;
  for (int used = used_words; used <= word && !used_words.compare_exchange_weak(used, word + 1);) {
  }
}

void clear_bit(int descriptor) {
  auto& bits = not_inherited_bits[static_cast<std::size_t>(descriptor / kBits)];
  const std::uint64_t bit = std::uint64_t{1} << descriptor % kBits;
  if ((bits & bit) != 0) bits &= ~bit;
}

}  // namespace

Descriptor Descriptor::not_inherited(int value) {
  if (value >= 0 && value < kMost) set_bit(value);
  return Descriptor(value);
}

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  if (this != &other) {
    close();
    value_ = std::exchange(other.value_, -1);
  }
  return *this;
}

void Descriptor::close() noexcept {
  if (value_ < 0) return;
  if (value_ < kMost) clear_bit(value_);  // before another owner can get the number
  ::close(value_);
  value_ = -1;
}

std::string error_text(int number) {
  std::string text = std::generic_category().message(number);
  rlimit limit{};
  if (number == EMFILE && ::getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    text += " (this process may have " + std::to_string(limit.rlim_cur) +
            ": raise the limit with ulimit -n)";
  }
  if (number == EFBIG) text += " (see ulimit -f)";
  if (number == ENFILE) text += " (in the whole system: raise fs.file-max with sysctl)";
  return text;
}

void throw_system(const std::string& what) {
  throw Error(ErrorCode::kSystem, kNoPeer, what + ": " + error_text(errno));
}

}  // namespace kolo::inline v0::posix
