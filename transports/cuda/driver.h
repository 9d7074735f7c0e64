// The seam to the CUDA driver: the few of its functions that kolo calls, with their own meaning.
//
// Every call returns the driver's result code, 0 for success. Behind it stands the installed
// library (installed_driver.h) or, in tests, a played machine. What a failure means in words,
// contexts and clean-up is Device's business (device.h). The numbers are those of the driver's
// binary interface, declared here once more so that no toolkit is needed to build. From any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace kolo::cuda {

using Address = std::uint64_t;  // of device memory, or of host memory as a device sees it
using Context = void*;
using Stream = void*;  // null: the default one
using Event = void*;

// What opens another process's allocation.
struct IpcHandle {
  std::array<char, 64> bytes;
};

// Result codes that mean something to kolo.
enum Result : int {
  kSuccess = 0,
  kInvalidValue = 1,
  kOutOfMemory = 2,
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
  kNotPermitted = 800,
  kNotSupported = 801,
  kSystemDriverMismatch = 803,
};

enum DeviceAttribute : int {
  kMemoryClock = 36,     // kHz; two transfers each
  kMemoryBusWidth = 37,  // bits
  kCanUse64BitStreamMemoryOperations = 122,
};

enum PointerAttribute : int {
  kMemoryType = 2,  // 1 host, 2 device
  kBufferId = 7,    // 64 bits; of an allocation, never used again in a process
  kIsManaged = 8,
  kDeviceOrdinal = 9,
  kIsIpcCapable = 10,
  kRangeStart = 11,
  kRangeSize = 12,
  kMempool = 17,
};

inline constexpr unsigned kWaitUntilAtLeast = 0;  // cyclic: (int64)(word - value) >= 0
inline constexpr unsigned kLazyPeerAccess = 1;
inline constexpr unsigned kPortableAndMapped = 3;
inline constexpr unsigned kEventWithoutTiming = 2;
inline constexpr unsigned kIndependentStream = 1;  // of the default stream
inline constexpr int kUrgent = -1000;              // of streams: clamped to what there is
inline constexpr int kRelaxedCapture = 2;          // of a thread: all calls beside a capture

class Driver {
 public:
  Driver() = default;
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;
  virtual ~Driver() = default;

  // Why nothing below may be called: no library, or one that lacks functions; empty where all may.
  virtual std::string why_absent() const = 0;

  virtual int init() = 0;
  virtual int version(int* version) = 0;  // 13000 for 13.0
  // Both null where the driver does not know the code either.
  virtual const char* error_name(int code) = 0;
  virtual const char* error_text(int code) = 0;

  virtual int device_count(int* count) = 0;
  virtual int device_name(char* name, int bytes, int device) = 0;
  virtual int device_uuid(std::array<std::uint8_t, 16>* uuid, int device) = 0;
  virtual int device_attribute(int* value, DeviceAttribute attribute, int device) = 0;
  virtual int can_access_peer(int* can, int device, int peer) = 0;

  virtual int retain_context(Context* context, int device) = 0;
  virtual int release_context(int device) = 0;
  virtual int push_context(Context context) = 0;
  virtual int pop_context(Context* context) = 0;
  virtual int current_device(int* device) = 0;  // kInvalidContext where none is current
  virtual int enable_peer_access(Context peer) = 0;

  // In the current context from here on.
  virtual int allocate(Address* memory, std::size_t bytes) = 0;
  virtual int free(Address memory) = 0;
  virtual int memory_info(std::size_t* free, std::size_t* total) = 0;
  virtual int allocate_host(void** memory, std::size_t bytes) = 0;
  virtual int free_host(void* memory) = 0;
  virtual int register_host(void* memory, std::size_t bytes, unsigned flags) = 0;
  virtual int unregister_host(void* memory) = 0;
  virtual int host_address(Address* address, void* memory) = 0;
  virtual int pointer_attribute(void* value, PointerAttribute attribute, Address pointer) = 0;

  virtual int ipc_handle(IpcHandle* handle, Address memory) = 0;
  virtual int ipc_open(Address* memory, const IpcHandle& handle, unsigned flags) = 0;
  virtual int ipc_close(Address memory) = 0;

  virtual int create_stream(Stream* stream, unsigned flags, int priority) = 0;
  virtual int destroy_stream(Stream stream) = 0;  // what it was given is still done
  virtual int copy(Address to, Address from, std::size_t bytes, Stream stream) = 0;
  virtual int wait_value(Stream stream, Address word, std::uint64_t value, unsigned flags) = 0;
  virtual int write_value(Stream stream, Address word, std::uint64_t value, unsigned flags) = 0;
  virtual int write_short_value(Stream stream, Address word, std::uint32_t value) = 0;
  // Status 0: it is not being captured into a graph. The number is that of the capture, which
  // streams that have joined it share, and never used again.
  virtual int capture_of(Stream stream, int* status, std::uint64_t* number) = 0;
  // Of this thread; gives back what it was.
  virtual int exchange_capture_mode(int* mode) = 0;

  virtual int create_event(Event* event, unsigned flags) = 0;
  virtual int destroy_event(Event event) = 0;
  virtual int record_event(Event event, Stream stream) = 0;
  virtual int query_event(Event event) = 0;  // kNotReady while the stream has not come there
  virtual int wait_event(Stream stream, Event event) = 0;
};

}  // namespace kolo::cuda
