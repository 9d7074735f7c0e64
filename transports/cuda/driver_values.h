// Types, result codes and constants of the driver's binary interface. Declared here again, so that
// no CUDA toolkit is needed to build.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace kolo::inline v0::cuda {

using Address = std::uint64_t;  // of device memory, or of host memory as a device sees it
using Context = void*;
using Stream = void*;  // null: the default stream
using Event = void*;

inline Address address_of(const void* pointer) { return reinterpret_cast<Address>(pointer); }
inline std::byte* pointer_to(Address address) { return reinterpret_cast<std::byte*>(address); }

// Handle by which another process opens an allocation.
struct IpcHandle {
  std::array<char, 64> bytes;
};

// Wait for a word, or write of a word, on a stream: the driver's CUstreamBatchMemOpParams.
struct WordOperation {
  enum Kind : std::uint32_t { kWriteLow = 2, kWait = 4, kWrite = 5 };

  Kind kind = kWait;
  Address word = 0;
  std::uint64_t value = 0;
  unsigned flags = 0;  // wait until the word is at least the value; write after all earlier work
  std::array<std::uint64_t, 2> reserved{};  // for the driver
};
static_assert(sizeof(WordOperation) == 48 && offsetof(WordOperation, word) == 8 &&
              offsetof(WordOperation, value) == 16 && offsetof(WordOperation, flags) == 24);

inline constexpr std::size_t kMostWordOperations = 256;

// The stream waits until (int64)(word - value) >= 0.
constexpr WordOperation wait_for_word(Address word, std::uint64_t value) {
  return {.kind = WordOperation::kWait, .word = word, .value = value};
}
// Writes after all work enqueued before; a reader of the word sees that work's results.
constexpr WordOperation write_word(Address word, std::uint64_t value) {
  return {.kind = WordOperation::kWrite, .word = word, .value = value};
}
// Likewise for the low half of a word. The high half keeps its value.
constexpr WordOperation write_low_word(Address word, std::uint32_t value) {
  return {.kind = WordOperation::kWriteLow, .word = word, .value = value};
}

// Result codes that kolo handles.
enum Result : int {
  kSuccess = 0,
  kInvalidValue = 1,
  kOutOfMemory = 2,
  kDeinitialized = 4,
  kNoDevice = 100,
  kInvalidDevice = 101,
  kInvalidContext = 201,
  kMapFailed = 205,
  kAlreadyMapped = 208,
  kInvalidHandle = 400,
  kNotReady = 600,
  kIllegalAddress = 700,
  kPeerAccessAlreadyEnabled = 704,
  kContextIsDestroyed = 709,
  kLaunchFailed = 719,
  kLastOfLostContext = 720,  // 700 to 720 stay, and end all work of the context
  kNotPermitted = 800,
  kNotSupported = 801,
  kSystemDriverMismatch = 803,
};

enum DeviceAttribute : int {
  kMemoryClock = 36,     // kHz; two transfers per cycle
  kMemoryBusWidth = 37,  // bits
  kMemoryPoolsSupported = 115,
  kCanUse64BitStreamMemoryOperations = 122,
};

enum PointerAttribute : int {
  kMemoryType = 2,  // 1 host, 2 device
  kBufferId = 7,    // 64 bits; per allocation, never used again in a process
  kIsManaged = 8,
  kDeviceOrdinal = 9,
  kIsIpcCapable = 10,
  kRangeStart = 11,
  kRangeSize = 12,
  kMempool = 17,
};

inline constexpr unsigned kLazyPeerAccess = 1;
inline constexpr unsigned kPortableAndMapped = 3;
inline constexpr unsigned kEventWithoutTiming = 2;
inline constexpr unsigned kIndependentStream = 1;  // does not synchronize with the default stream
inline constexpr int kUrgent = -1000;              // highest priority: the driver clamps it
inline constexpr int kRelaxedCapture = 2;          // per thread: allows all calls during a capture

}  // namespace kolo::inline v0::cuda
