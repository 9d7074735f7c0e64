#include "transports/cuda/library.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>
#include <mutex>
#include <vector>

#include "transports/posix/library.h"

namespace kolo::inline v0::cuda {

namespace {

class InstalledDriver final : public Driver {
 public:
  explicit InstalledDriver(const std::string& name) : library_(name) {
    if (!library_.why().empty()) {
      why_absent_ = fmt::format(
          "no CUDA driver ({}): {}; install NVIDIA's driver, or, in a container, run it with the "
          "devices (--gpus all)",
          name, library_.why());
      return;
    }
    std::vector<const char*> missing;
#define KOLO_FUNCTION(name, symbol, ...) \
  if (!library_.find(symbol, name##_)) missing.push_back(symbol);
#include "transports/cuda/library_functions.inc"
#undef KOLO_FUNCTION
    if (!missing.empty()) {
      why_absent_ = fmt::format(
          "the CUDA driver ({}) is too old: it has no {}; install one of CUDA 12.0 or later", name,
          fmt::join(missing, ", "));
    }
  }

  std::string why_absent() const override { return why_absent_; }

  int init() override { return start_(0); }
  int version(int* version) override { return get_version_(version); }
  const char* error_name(int code) override {
    const char* name = nullptr;
    return get_error_name_(code, &name) == kSuccess ? name : nullptr;
  }
  const char* error_text(int code) override {
    const char* text = nullptr;
    return get_error_string_(code, &text) == kSuccess ? text : nullptr;
  }

  int device_count(int* count) override { return get_count_(count); }
  int device_name(char* name, int bytes, int device) override {
    return on(device, [&](int handle) { return get_name_(name, bytes, handle); });
  }
  int device_uuid(std::array<std::uint8_t, 16>* uuid, int device) override {
    return on(device, [&](int handle) { return get_uuid_(uuid, handle); });
  }
  int device_attribute(int* value, DeviceAttribute attribute, int device) override {
    return on(device, [&](int handle) { return get_attribute_(value, attribute, handle); });
  }
  int can_access_peer(int* can, int device, int peer) override {
    return on(device, [&](int handle) {
      return on(peer, [&](int other) { return can_access_(can, handle, other); });
    });
  }

  int retain_context(Context* context, int device) override {
    return on(device, [&](int handle) { return retain_(context, handle); });
  }
  int release_context(int device) override {
    return on(device, [&](int handle) { return release_(handle); });
  }
  int push_context(Context context) override { return push_(context); }
  int pop_context(Context* context) override { return pop_(context); }
  int current_device(int* device) override { return get_current_(device); }
  int enable_peer_access(Context peer) override { return enable_access_(peer, 0); }

  int allocate(Address* memory, std::size_t bytes) override { return mem_alloc_(memory, bytes); }
  int allocate_async(Address* memory, std::size_t bytes, Stream stream) override {
    return mem_alloc_async_(memory, bytes, stream);
  }
  int free(Address memory) override { return mem_free_(memory); }
  int memory_info(std::size_t* free, std::size_t* total) override {
    return mem_get_info_(free, total);
  }
  int allocate_host(void** memory, std::size_t bytes) override {
    return mem_host_alloc_(memory, bytes, kPortableAndMapped);
  }
  int free_host(void* memory) override { return mem_free_host_(memory); }
  int register_host(void* memory, std::size_t bytes, unsigned flags) override {
    return mem_host_register_(memory, bytes, flags);
  }
  int unregister_host(void* memory) override { return mem_host_unregister_(memory); }
  int host_address(Address* address, void* memory) override {
    return mem_host_get_device_pointer_(address, memory, 0);
  }
  int pointer_attribute(void* value, PointerAttribute attribute, Address pointer) override {
    return pointer_get_attribute_(value, attribute, pointer);
  }

  int ipc_handle(IpcHandle* handle, Address memory) override {
    return ipc_get_mem_handle_(handle, memory);
  }
  int ipc_open(Address* memory, const IpcHandle& handle, unsigned flags) override {
    return ipc_open_mem_handle_(memory, handle, flags);
  }
  int ipc_close(Address memory) override { return ipc_close_mem_handle_(memory); }

  int create_stream(Stream* stream, unsigned flags, int priority) override {
    return stream_create_(stream, flags, priority);
  }
  int destroy_stream(Stream stream) override { return stream_destroy_(stream); }
  int copy(Address to, Address from, std::size_t bytes, Stream stream) override {
    return memcpy_async_(to, from, bytes, stream);
  }
  int word_operations(Stream stream, std::span<WordOperation> operations) override {
    return stream_batch_mem_op_(stream, static_cast<unsigned>(operations.size()), operations.data(),
                                0);
  }
  int capture_of(Stream stream, int* status, std::uint64_t* number) override {
    return stream_get_capture_info_(stream, status, number, nullptr, nullptr, nullptr);
  }
  int exchange_capture_mode(int* mode) override { return exchange_mode_(mode); }

  int create_event(Event* event, unsigned flags) override { return event_create_(event, flags); }
  int destroy_event(Event event) override { return event_destroy_(event); }
  int record_event(Event event, Stream stream) override { return event_record_(event, stream); }
  int query_event(Event event) override { return event_query_(event); }
  int wait_event(Stream stream, Event event) override {
    return stream_wait_event_(stream, event, 0);
  }

 private:
  // Calls `use` with the driver's handle of device number `device`.
  template <typename Use>
  int on(int device, const Use& use) {
    int handle = 0;
    const int result = get_device_(&handle, device);
    return result == kSuccess ? use(handle) : result;
  }

  posix::InstalledLibrary library_;
  std::string why_absent_;
#define KOLO_FUNCTION(name, symbol, ...) int (*name##_)(__VA_ARGS__) = nullptr;
#include "transports/cuda/library_functions.inc"
#undef KOLO_FUNCTION
};

}  // namespace

std::shared_ptr<Driver> installed_driver(const std::string& library) {
  static std::mutex mutex;
  static std::map<std::string, std::weak_ptr<Driver>> in_use;
  const std::lock_guard lock(mutex);
  std::weak_ptr<Driver>& known = in_use[library];
  auto driver = known.lock();
  if (driver == nullptr) known = driver = std::make_shared<InstalledDriver>(library);
  return driver;
}

}  // namespace kolo::inline v0::cuda
