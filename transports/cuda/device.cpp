#include "transports/cuda/device.h"

#include <fmt/format.h>
#include <utility>

#include "transports/base/check.h"
#include "transports/error.h"

namespace kolo::inline v0::cuda {

namespace {

std::string uuid_text(const std::array<std::uint8_t, 16>& uuid) {
  std::string text = "GPU-";
  for (std::size_t i = 0; i < uuid.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += fmt::format("{:02x}", uuid[i]);
  }
  return text;
}

constexpr std::uint32_t kHostType = 1;  // a value of kMemoryType

constexpr const char* kExchange = "cuThreadExchangeStreamCaptureMode";

// Innermost Entered object of this thread.
thread_local constinit Device::Entered* innermost = nullptr;

// True if the context is lost: it runs no more work. All later calls return such a code, too.
bool is_lost(int code) {
  return code == kDeinitialized || (code >= kIllegalAddress && code <= kLastOfLostContext);
}

}  // namespace

std::string uuid_of(Driver& driver, int device) {
  std::array<std::uint8_t, 16> uuid{};
  const int code = driver.device_uuid(&uuid, device);
  if (code != kSuccess) {
    throw Error(
        ErrorCode::kSystem, kNoPeer,
        fmt::format("cuDeviceGetUuid_v2 of device {}: {}", device, words_for(driver, code)));
  }
  return uuid_text(uuid);
}

int count_devices(Driver& driver) {
  int count = 0;
  return driver.device_count(&count) == kSuccess ? count : 0;
}

int current_device(Driver& driver) {
  int device = -1;
  return driver.current_device(&device) == kSuccess ? device : -1;
}

// For clean-up: continues if the mode cannot be changed.
class Device::BesideCapture {
 public:
  explicit BesideCapture(Driver& driver)
      : driver_(driver), has_changed_(driver_.exchange_capture_mode(&mode_) == kSuccess) {}
  ~BesideCapture() {
    if (has_changed_) driver_.exchange_capture_mode(&mode_);
  }
  BesideCapture(const BesideCapture&) = delete;
  BesideCapture& operator=(const BesideCapture&) = delete;

 private:
  Driver& driver_;
  int mode_ = kRelaxedCapture;
  const bool has_changed_;
};

Device::Entered::Entered(const Device& device)
    : device_(device), outer_(innermost), mode_(kRelaxedCapture) {
  if (device.entered() != nullptr) return;
  Driver& driver = *device.driver_;
  device.check_call(driver.exchange_capture_mode(&mode_), kExchange);
  if (const int code = driver.push_context(device.context_.get()); code != kSuccess) {
    driver.exchange_capture_mode(&mode_);
    device.fail(code, "cuCtxPushCurrent_v2");
  }
  has_entered_ = true;
  innermost = this;
}

Device::Entered::~Entered() {
  if (!has_entered_) return;
  innermost = outer_;
  Context popped = nullptr;
  device_.driver_->pop_context(&popped);
  device_.driver_->exchange_capture_mode(&mode_);
}

// An Entered of another Device object for the same device will do.
Device::Entered* Device::entered(const Driver& driver, Context context) {
  const bool is_here = innermost != nullptr && innermost->device_.driver_.get() == &driver &&
                       innermost->device_.context_.get() == context;
  return is_here ? innermost : nullptr;
}

Device::Entered* Device::entered() const { return entered(*driver_, context_.get()); }

Device::Device(std::shared_ptr<Driver> driver, int number)
    : driver_(std::move(driver)), number_(number), describe_(fmt::format("device {}", number)) {
  const int count = count_visible();
  if (number < 0 || number >= count) {
    throw Error(ErrorCode::kUnavailable, kNoPeer,
                fmt::format("there is no CUDA device {}: this process sees {} (nvidia-smi, "
                            "CUDA_VISIBLE_DEVICES)",
                            number, count));
  }
  std::array<char, 128> name{};
  check_call(driver_->device_name(name.data(), static_cast<int>(name.size()) - 1, number),
             "cuDeviceGetName");
  name_ = name.data();
  describe_ = fmt::format("device {} ({})", number, name_);
  std::array<std::uint8_t, 16> uuid{};
  check_call(driver_->device_uuid(&uuid, number), "cuDeviceGetUuid_v2");
  uuid_ = uuid_text(uuid);
  int can_wait = 0;
  check_call(driver_->device_attribute(&can_wait, kCanUse64BitStreamMemoryOperations, number),
             "cuDeviceGetAttribute");
  if (can_wait == 0) {
    throw Error(ErrorCode::kUnavailable, kNoPeer,
                fmt::format("{}: its streams cannot wait for words of 64 bits "
                            "(CAN_USE_64_BIT_STREAM_MEM_OPS): use another transport",
                            describe_));
  }
  Context context = nullptr;
  check_call(driver_->retain_context(&context, number), "cuDevicePrimaryCtxRetain");
  context_ = std::shared_ptr<void>(
      context, [driver = driver_, number](void*) { driver->release_context(number); });
}

void Device::fail(int code, const std::string& call, const std::string& advice) const {
  throw Error(ErrorCode::kSystem, kNoPeer,
              fmt::format("{} on {}: {}{}", call, describe_, words_for(*driver_, code),
                          advice.empty() ? advice_for(code) : advice));
}

int Device::count_visible() const {
  int count = 0;
  check_call(driver_->device_count(&count), "cuDeviceGetCount");
  return count;
}

double Device::memory_GBps() const {
  int clock_kHz = 0;
  int width_bits = 0;
  const bool is_known =
      driver_->device_attribute(&clock_kHz, kMemoryClock, number_) == kSuccess &&
      driver_->device_attribute(&width_bits, kMemoryBusWidth, number_) == kSuccess;
  if (!is_known || clock_kHz <= 0 || width_bits <= 0) return 0;
  return 2e-6 * clock_kHz * width_bits / 8;
}

int Device::find(const std::string& other_uuid) const {
  for (int other = 0, count = count_visible(); other < count; ++other) {
    std::array<std::uint8_t, 16> uuid{};
    check_call(driver_->device_uuid(&uuid, other), "cuDeviceGetUuid_v2");
    if (uuid_text(uuid) == other_uuid) return other;
  }
  return -1;
}

bool Device::can_reach(int other) const {
  if (other == number_) return true;
  int can = 0;
  check_call(driver_->can_access_peer(&can, number_, other), "cuDeviceCanAccessPeer");
  return can != 0;
}

void Device::enable_peer(const Device& peer) const {
  if (peer.number_ == number_) return;
  const Entered here(*this);
  const int code = driver_->enable_peer_access(peer.context_.get());
  if (code != kPeerAccessAlreadyEnabled) check_call(code, "cuCtxEnablePeerAccess");
}

std::string Device::free_memory() const {
  std::size_t free = 0;
  std::size_t total = 0;
  if (driver_->memory_info(&free, &total) != kSuccess) return "";
  return fmt::format("; {} of {} are free there", in_units(free), in_units(total));
}

std::byte* Device::allocate(std::size_t bytes) const {
  const Entered here(*this);
  Address memory = 0;
  const int code = driver_->allocate(&memory, bytes);
  if (code != kSuccess) fail(code, "cuMemAlloc_v2 of " + in_units(bytes), free_memory());
  return pointer_to(memory);
}

std::byte* Device::allocate(std::size_t bytes, Stream stream) const {
  const Entered here(*this);
  int has_pools = 0;
  check_call(driver_->device_attribute(&has_pools, kMemoryPoolsSupported, number_),
             "cuDeviceGetAttribute");
  if (has_pools == 0) return allocate(bytes);
  Address memory = 0;
  const int code = driver_->allocate_async(&memory, bytes, stream);
  if (code != kSuccess) fail(code, "cuMemAllocAsync of " + in_units(bytes), free_memory());
  return pointer_to(memory);
}

// Errors are ignored: the caller could not act on them, and the end of the process frees the
// resource.
template <typename Body>
void Device::clean_up(Driver& driver, Context context, const Body& body) noexcept {
  if (entered(driver, context) != nullptr) return body();
  const BesideCapture beside(driver);
  if (driver.push_context(context) != kSuccess) return;
  body();
  Context popped = nullptr;
  driver.pop_context(&popped);
}

template <typename Body>
void Device::clean_up(const Body& body) const noexcept {
  clean_up(*driver_, context_.get(), body);
}

// The call may run after the end of this object.
void Device::put_off(std::function<void(Driver&)> call) const noexcept {
  driver_->frees().run([driver = driver_, context = context_, call = std::move(call)] {
    clean_up(*driver, context.get(), [&] { call(*driver); });
  });
}

void Device::after_frees(std::function<void()> then) const noexcept {
  driver_->frees().run(std::move(then));
}

void Device::free(std::byte* memory) const noexcept {
  put_off([memory](Driver& driver) { driver.free(address_of(memory)); });
}

std::byte* Device::allocate_host(std::size_t bytes) const {
  const Entered here(*this);
  void* memory = nullptr;
  const int code = driver_->allocate_host(&memory, bytes);
  if (code != kSuccess) {
    fail(code, "cuMemHostAlloc of " + in_units(bytes),
         "; the limit is the machine's memory less the memory that other processes have pinned");
  }
  return static_cast<std::byte*>(memory);
}

void Device::free_host(std::byte* memory) const noexcept {
  put_off([memory](Driver& driver) { driver.free_host(memory); });
}

std::byte* Device::seen_by_device(std::byte* memory) const {
  const Entered here(*this);
  Address address = 0;
  check_call(driver_->host_address(&address, memory), "cuMemHostGetDevicePointer_v2");
  return pointer_to(address);
}

Address Device::register_host(std::span<std::byte> memory) const {
  const Entered here(*this);
  int code = driver_->register_host(memory.data(), memory.size(), kPortableAndMapped);
  if (code != kSuccess) {
    fail(code, "cuMemHostRegister_v2 of " + in_units(memory.size()),
         "; is the limit on locked memory (ulimit -l) below that?");
  }
  Address address = 0;
  code = driver_->host_address(&address, memory.data());
  if (code != kSuccess) {
    driver_->unregister_host(memory.data());
    fail(code, "cuMemHostGetDevicePointer_v2");
  }
  return address;
}

void Device::unregister_host(std::byte* memory, std::shared_ptr<const void> owner) const noexcept {
  put_off([memory, owner = std::move(owner)](Driver& driver) { driver.unregister_host(memory); });
}

std::uint32_t Device::type_of(Address address) const {
  std::uint32_t type = 0;
  const int code = driver_->pointer_attribute(&type, kMemoryType, address);
  if (code == kInvalidValue) return 0;
  check_call(code, "cuPointerGetAttribute(MEMORY_TYPE)");
  return type;
}

bool Device::is_known(const void* pointer) const {
  const Entered here(*this);
  return type_of(address_of(pointer)) != 0;
}

std::uint64_t Device::number_at(const void* pointer) const {
  const Entered here(*this);
  std::uint64_t number = 0;
  const int code = driver_->pointer_attribute(&number, kBufferId, address_of(pointer));
  if (code == kInvalidValue) return 0;
  check_call(code, "cuPointerGetAttribute(BUFFER_ID)");
  return number;
}

std::uint64_t Device::buffer_at(const void* pointer) const {
  const Entered here(*this);
  const std::uint32_t type = type_of(address_of(pointer));
  return type == 0 || type == kHostType ? 0 : number_at(pointer);
}

// Asks for the kind first: other attributes are documented for the driver's own allocations only.
Pointer Device::look_at(const void* pointer) const {
  const Entered here(*this);
  const Address address = address_of(pointer);
  Pointer found;
  found.why_unexported = "it is host memory";
  const std::uint32_t type = type_of(address);
  if (type == 0) return found;
  const auto ask = [&](auto& value, PointerAttribute attribute, const char* name) {
    check_call(driver_->pointer_attribute(&value, attribute, address), name);
  };
  std::uint32_t is_managed = 0;
  ask(is_managed, kIsManaged, "cuPointerGetAttribute(IS_MANAGED)");
  if (is_managed == 0 && type == kHostType) {
    found.kind = Pointer::Kind::kPinned;
    found.why_unexported = "it is host memory that a device can access";
    return found;
  }
  ask(found.buffer, kBufferId, "cuPointerGetAttribute(BUFFER_ID)");
  ask(found.device, kDeviceOrdinal, "cuPointerGetAttribute(DEVICE_ORDINAL)");
  Address base = 0;
  ask(base, kRangeStart, "cuPointerGetAttribute(RANGE_START_ADDR)");
  ask(found.bytes, kRangeSize, "cuPointerGetAttribute(RANGE_SIZE)");
  found.base = pointer_to(base);
  if (is_managed != 0) {
    found.kind = Pointer::Kind::kManaged;
    found.why_unexported = "it is managed memory (cudaMallocManaged)";
  } else {
    found.kind = Pointer::Kind::kDevice;
    found.why_unexported = why_unexported(address);
  }
  return found;
}

std::string Device::why_unexported(Address address) const {
  const auto ask = [&](auto& value, PointerAttribute attribute, const char* name) {
    check_call(driver_->pointer_attribute(&value, attribute, address), name);
  };
  std::uint32_t can = 0;
  ask(can, kIsIpcCapable, "cuPointerGetAttribute(IS_LEGACY_CUDA_IPC_CAPABLE)");
  if (can != 0) return "";
  void* pool = nullptr;
  ask(pool, kMempool, "cuPointerGetAttribute(MEMPOOL_HANDLE)");
  return pool != nullptr
             ? "it is from a memory pool (cudaMallocAsync)"
             : "it is from the virtual memory functions (cuMemCreate), or another process's";
}

Stream Device::make_stream() const {
  const Entered here(*this);
  Stream stream = nullptr;
  check_call(driver_->create_stream(&stream, kIndependentStream, kUrgent),
             "cuStreamCreateWithPriority");
  return stream;
}

void Device::destroy_stream(Stream stream) const noexcept {
  clean_up([&] { driver_->destroy_stream(stream); });
}

void Device::copy(void* to, const void* from, std::size_t bytes, Stream stream) const {
  if (bytes == 0) return;
  const Entered here(*this);
  check_call(driver_->copy(address_of(to), address_of(from), bytes, stream), "cuMemcpyAsync");
}

void Device::run(std::span<WordOperation> operations, Stream stream) const {
  const Entered here(*this);
  check_call(driver_->word_operations(stream, operations), "cuStreamBatchMemOp_v2");
}

std::uint64_t Device::capture_of(Stream stream) const {
  const Entered here(*this);
  Entered& entered = *this->entered();
  if (entered.has_asked_ && entered.asked_ == stream) return entered.captured_by_;
  int status = 0;
  std::uint64_t number = 0;
  check_call(driver_->capture_of(stream, &status, &number), "cuStreamGetCaptureInfo_v2");
  entered.has_asked_ = true;
  entered.asked_ = stream;
  entered.captured_by_ = status == 0 ? 0 : number;
  return entered.captured_by_;
}

Event Device::make_event() const {
  const Entered here(*this);
  Event event = nullptr;
  check_call(driver_->create_event(&event, kEventWithoutTiming), "cuEventCreate");
  return event;
}

void Device::destroy_event(Event event) const noexcept {
  clean_up([&] { driver_->destroy_event(event); });
}

void Device::record(Event event, Stream stream) const {
  const Entered here(*this);
  check_call(driver_->record_event(event, stream), "cuEventRecord");
}

bool Device::has_come(Event event) const {
  const Entered here(*this);
  const int code = driver_->query_event(event);
  if (code != kNotReady) check_call(code, "cuEventQuery");
  return code != kNotReady;
}

bool Device::is_done(Event event) const noexcept {
  int code = kNotReady;
  clean_up([&] { code = driver_->query_event(event); });
  return code == kSuccess || is_lost(code);
}

void Device::wait_for(Event event, Stream stream) const {
  const Entered here(*this);
  check_call(driver_->wait_event(stream, event), "cuStreamWaitEvent");
}

}  // namespace kolo::inline v0::cuda
