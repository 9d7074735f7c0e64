#include "test/transports/cuda/fake_driver.h"

#include <algorithm>
#include <cstring>

#include "test/transports/cuda/fake_driver_internals.h"

namespace kolo::test {

namespace {

// The context that this thread pushed last, by device. Contexts are dummy pointers that encode the
// device number.
thread_local std::vector<cuda::Context> pushed;

cuda::Context context_of(int device) {
  return reinterpret_cast<cuda::Context>(static_cast<std::uintptr_t>(device) + 1);
}
int device_of(cuda::Context context) {
  return static_cast<int>(reinterpret_cast<std::uintptr_t>(context)) - 1;
}

}  // namespace

int played::pushed_device() { return pushed.empty() ? -1 : device_of(pushed.back()); }

// --- the machine ---

std::shared_ptr<FakeDriver> FakeMachine::process() { return std::make_shared<FakeDriver>(*this); }

bool FakeMachine::run() {
  const std::lock_guard lock(mutex_);
  return run_locked();
}

void FakeMachine::run_at_once() {
  const std::lock_guard lock(mutex_);
  runs_ = Runs::kAtOnce;
}

void FakeMachine::run_when_told() {
  const std::lock_guard lock(mutex_);
  runs_ = Runs::kWhenTold;
}

std::size_t FakeMachine::run_some(std::size_t most) {
  const std::lock_guard lock(mutex_);
  std::size_t ran = 0;
  for (bool has_moved = true; has_moved;) {
    has_moved = false;
    for (const auto& stream : streams_) {
      if (ran == most || !try_first(*stream)) continue;
      has_moved = true;
      ++ran;
    }
  }
  return ran;
}

bool FakeMachine::step(cuda::Stream stream) {
  const std::lock_guard lock(mutex_);
  return try_first(*static_cast<FakeStream*>(stream));
}

bool FakeMachine::try_first(FakeStream& stream) {
  if (stream.queue.empty()) return false;
  const FakeWork& first = stream.queue.front();
  const bool is_behind =
      hardware_queues != 0 && std::ranges::any_of(streams_, [&](const auto& other) {
        return other->owner == stream.owner && !other->queue.empty() &&
               other->number % hardware_queues == stream.number % hardware_queues &&
               other->queue.front().number < first.number;
      });
  if (is_behind || !first.try_run()) return false;
  stream.queue.pop_front();
  return true;
}

bool FakeMachine::run_locked() {
  bool has_moved = true;
  while (has_moved) {
    has_moved = false;
    for (const auto& stream : streams_) {
      while (try_first(*stream)) has_moved = true;
    }
  }
  return std::all_of(streams_.begin(), streams_.end(),
                     [](const auto& stream) { return stream->queue.empty(); });
}

std::vector<std::string> FakeMachine::violations() const {
  const std::lock_guard lock(mutex_);
  return violations_;
}

std::string FakeMachine::left_over() const {
  const std::lock_guard lock(mutex_);
  std::string text;
  for (const FakeDriver* process : processes_) {
    for (const auto& [address, range] : process->ranges_) {
      text += "process " + std::to_string(process->number_) +
              (range.is_import ? ": a mapping of "
               : range.is_host ? ": host memory of "
                               : ": memory of ") +
              std::to_string(range.bytes) + " bytes; ";
    }
    for (const auto& [device, count] : process->contexts_) {
      if (count != 0) text += "a context of device " + std::to_string(device) + "; ";
    }
    if (!process->events_.empty()) text += std::to_string(process->events_.size()) + " events; ";
  }
  for (const auto& stream : streams_) {
    if (stream->is_created && !stream->is_destroyed)
      text += "process " + std::to_string(stream->owner->number_) + ": a stream; ";
  }
  return text;
}

std::size_t FakeMachine::pinned_bytes() const {
  const std::lock_guard lock(mutex_);
  std::size_t bytes = 0;
  for (const FakeDriver* process : processes_) {
    for (const auto& [address, range] : process->ranges_) bytes += range.is_host ? range.bytes : 0;
  }
  return bytes;
}

// --- a process ---

FakeDriver::FakeDriver(FakeMachine& machine) : machine_(machine), number_(++machine.last_process_) {
  const std::lock_guard lock(machine_.mutex_);
  machine_.processes_.push_back(this);
  add_stream();  // the default stream, which null means
}

// Like the end of a process: all its resources and enqueued work are gone.
FakeDriver::~FakeDriver() {
  const std::lock_guard lock(machine_.mutex_);
  std::erase(machine_.processes_, this);
  std::erase_if(machine_.streams_, [this](const auto& stream) { return stream->owner == this; });
  for (auto& [address, range] : ranges_) {
    if (range.is_import) --range.backing->times_open;
  }
}

void FakeDriver::fail(const std::string& function, int code, int nth) {
  const std::lock_guard lock(machine_.mutex_);
  failures_[function] = {code, nth == 0 ? 0 : calls_[function] + nth};
}

int FakeDriver::calls(const std::string& function) const {
  const std::lock_guard lock(machine_.mutex_);
  const auto found = calls_.find(function);
  return found == calls_.end() ? 0 : found->second;
}

std::map<std::string, int> FakeDriver::all_calls() const {
  const std::lock_guard lock(machine_.mutex_);
  return calls_;
}

int FakeDriver::enter(const char* function) {
  const int count = ++calls_[function];
  if (!is_beside_capture(function)) return played::kCaptureUnsupported;
  const auto failure = failures_.find(function);
  if (failure == failures_.end()) return 0;
  return failure->second.nth == 0 || failure->second.nth == count ? failure->second.code : 0;
}

void FakeDriver::violate(const std::string& text) {
  machine_.violations_.push_back("process " + std::to_string(number_) + ": " + text);
}

cuda::Stream FakeDriver::make_stream(int device) {
  const std::lock_guard lock(machine_.mutex_);
  return add_stream(device);
}

FakeStream* FakeDriver::stream_here(cuda::Stream stream) {
  FakeStream* const found = stream_of(stream);
  const int here = played::pushed_device();
  const bool is_elsewhere =
      found != nullptr && found->device >= 0 && here >= 0 && found->device != here;
  return is_elsewhere ? nullptr : found;
}

FakeStream* FakeDriver::add_stream(int device) {
  machine_.streams_.push_back(std::make_unique<FakeStream>());
  machine_.streams_.back()->device = device;
  machine_.streams_.back()->owner = this;
  machine_.streams_.back()->number = streams_made_++;
  return machine_.streams_.back().get();
}

// Null if it has been destroyed.
FakeStream* FakeDriver::stream_of(cuda::Stream stream) {
  for (const auto& known : machine_.streams_) {
    if (known->owner != this) continue;
    if (stream == nullptr || known.get() == stream)
      return known->is_destroyed ? nullptr : known.get();
  }
  violate("a stream of another process");
  return nullptr;
}

// --- the driver's functions ---

std::string FakeDriver::why_absent() const { return machine_.absent; }

int FakeDriver::init() {
  KOLO_ENTER("init")
  return machine_.devices_ == 0 ? cuda::kNoDevice : 0;
}

int FakeDriver::version(int* version) {
  KOLO_ENTER("version")
  *version = machine_.driver_version;
  return 0;
}

const char* FakeDriver::error_name(int code) {
  switch (code) {
    case cuda::kOutOfMemory:
      return "CUDA_ERROR_OUT_OF_MEMORY";
    case cuda::kNoDevice:
      return "CUDA_ERROR_NO_DEVICE";
    case cuda::kAlreadyMapped:
      return "CUDA_ERROR_ALREADY_MAPPED";
    case cuda::kInvalidHandle:
      return "CUDA_ERROR_INVALID_HANDLE";
    case cuda::kNotSupported:
      return "CUDA_ERROR_NOT_SUPPORTED";
    default:
      return nullptr;
  }
}

const char* FakeDriver::error_text(int) { return "in the driver's words"; }

int FakeDriver::device_count(int* count) {
  KOLO_ENTER("device_count")
  *count = machine_.devices_;
  return 0;
}

int FakeDriver::device_name(char* name, int bytes, int device) {
  KOLO_ENTER("device_name")
  const std::string text = "Played " + std::to_string(device);
  std::strncpy(name, text.c_str(), static_cast<std::size_t>(bytes));
  return 0;
}

int FakeDriver::device_uuid(std::array<std::uint8_t, 16>* uuid, int device) {
  KOLO_ENTER("device_uuid")
  uuid->fill(static_cast<std::uint8_t>(device + 1));
  return 0;
}

int FakeDriver::device_attribute(int* value, cuda::DeviceAttribute attribute, int device) {
  KOLO_ENTER("device_attribute")
  switch (attribute) {
    case cuda::kMemoryClock:
      *value = 2'619'000;
      break;
    case cuda::kMemoryBusWidth:
      *value = 5120;
      break;
    case cuda::kMemoryPoolsSupported:
      *value = machine_.has_pools ? 1 : 0;
      break;
    case cuda::kCanUse64BitStreamMemoryOperations:
      *value = machine_.hidden.count(device) == 0 ? 1 : 0;
      break;
  }
  return 0;
}

int FakeDriver::can_access_peer(int* can, int device, int peer) {
  KOLO_ENTER("can_access_peer")
  *can = machine_.peers_reach && device != peer ? 1 : 0;
  return 0;
}

int FakeDriver::retain_context(cuda::Context* context, int device) {
  KOLO_ENTER("retain_context")
  ++contexts_[device];
  *context = context_of(device);
  return 0;
}

int FakeDriver::release_context(int device) {
  KOLO_ENTER("release_context")
  --contexts_[device];
  return 0;
}

int FakeDriver::push_context(cuda::Context context) {
  KOLO_ENTER("push_context")
  if (contexts_[device_of(context)] <= 0) return cuda::kContextIsDestroyed;
  pushed.push_back(context);
  return 0;
}

int FakeDriver::pop_context(cuda::Context* context) {
  KOLO_ENTER("pop_context")
  if (pushed.empty()) {
    violate("pop_context without a push");
    return cuda::kInvalidContext;
  }
  *context = pushed.back();
  pushed.pop_back();
  return 0;
}

int FakeDriver::current_device(int* device) {
  KOLO_ENTER("current_device")
  if (current < 0) return cuda::kInvalidContext;
  *device = current;
  return 0;
}

int FakeDriver::enable_peer_access(cuda::Context) {
  KOLO_ENTER("enable_peer_access")
  return machine_.peers_reach ? 0 : 217;
}

}  // namespace kolo::test
