// The seam to the CUDA driver: the few of its functions that kolo calls, with their own meaning.
//
// Every call returns the driver's result code, 0 for success. Behind it stands the installed
// library (installed_driver.h) or, in tests, a played machine. What a failure means in words,
// contexts and clean-up is Device's business (device.h). From any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "transports/cuda/driver_values.h"
#include "transports/cuda/ipc_mappings.h"

namespace kolo::cuda {

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

  // What is open through it. One object stands for the driver of a process.
  IpcMappings& openings() { return mappings_; }

 private:
  IpcMappings mappings_;
};

}  // namespace kolo::cuda
