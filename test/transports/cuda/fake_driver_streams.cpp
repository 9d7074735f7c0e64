// The fake driver's streams and events.
#include <atomic>
#include <cstring>

#include "test/transports/cuda/fake_driver_internals.h"

namespace kolo::test {

using cuda::Address;

namespace {

std::uint64_t load(std::byte* word) {
  return std::atomic_ref<std::uint64_t>(*reinterpret_cast<std::uint64_t*>(word))
      .load(std::memory_order_acquire);
}

template <typename Value>
void store(std::byte* word, Value value) {
  std::atomic_ref<Value>(*reinterpret_cast<Value*>(word)).store(value, std::memory_order_release);
}

}  // namespace

int FakeDriver::create_stream(cuda::Stream* stream, unsigned, int) {
  KOLO_ENTER("create_stream")
  if (played::pushed_device() < 0) return cuda::kInvalidContext;
  FakeStream* const made = add_stream(played::pushed_device());
  made->is_created = true;
  *stream = made;
  return 0;
}

int FakeDriver::destroy_stream(cuda::Stream stream) {
  KOLO_ENTER("destroy_stream")
  FakeStream* const queue = stream_of(stream);
  if (queue == nullptr) {
    violate("a stream destroyed twice");
    return cuda::kInvalidHandle;
  }
  queue->is_destroyed = true;
  return 0;
}

void FakeDriver::wait_to_allocate(const std::string& function) {
  const std::lock_guard lock(machine_.mutex_);
  if (machine_.allocations_wait) wait_for_context(function);
}

void FakeDriver::wait_for_context(const std::string& function) {
  machine_.run_locked();
  const int device = played::pushed_device();
  for (const auto& stream : machine_.streams_) {
    const bool is_here =
        stream->owner == this && (device < 0 || stream->device < 0 || stream->device == device);
    if (is_here && !stream->queue.empty())
      return violate(function + " while a stream of the context waits");
  }
}

int FakeDriver::copy(Address to, Address from, std::size_t bytes, cuda::Stream stream) {
  KOLO_ENTER("copy")
  FakeStream* const queue = stream_here(stream);
  if (queue == nullptr) return cuda::kInvalidHandle;
  const auto side = [this](Address at) {
    const auto* const range = range_of(at & ~played::kSeenByDevices);
    return range == nullptr || range->second.is_host ? "host" : "device";
  };
  load_locked(std::string("copy from ") + side(from) + " to " + side(to));
  moved_.read += bytes;
  moved_.written += bytes;
  give(*queue, [this, to, from, bytes] {
    std::byte* const into = resolve(to, bytes, "copy to");
    const std::byte* const source = resolve(from, bytes, "copy from");
    if (into != nullptr && source != nullptr) std::memmove(into, source, bytes);
    return true;
  });
  machine_.run_if_at_once();
  return 0;
}

FakeDriver::Moved FakeDriver::moved() const {
  const std::lock_guard lock(machine_.mutex_);
  return moved_;
}

void FakeDriver::count_moved(const Moved& moved) {
  const std::lock_guard lock(machine_.mutex_);
  moved_.read += moved.read;
  moved_.written += moved.written;
}

void FakeDriver::load_kernel(const std::string& kernel) {
  const std::lock_guard lock(machine_.mutex_);
  load_locked(kernel);
}

void FakeDriver::load_locked(const std::string& kernel) {
  const bool is_new = loaded_.insert(kernel).second;
  if (is_new && machine_.loads_lazily) wait_for_context("loading of '" + kernel + "'");
}

void FakeDriver::launch(cuda::Stream stream, const std::vector<Operand>& operands, Kernel kernel) {
  const std::lock_guard lock(machine_.mutex_);
  FakeStream* const queue = stream_of(stream);
  if (queue == nullptr) return;
  give(*queue, [this, operands, kernel = std::move(kernel)] {
    std::vector<std::byte*> found;
    for (const Operand& operand : operands) {
      if (operand.at != nullptr) {
        found.push_back(resolve(played::address_of(operand.at), operand.bytes, "a kernel"));
        if (found.back() == nullptr) return true;
      } else {
        found.push_back(nullptr);
      }
    }
    kernel(found);
    return true;
  });
  machine_.run_if_at_once();
}

int FakeDriver::word_operations(cuda::Stream stream, std::span<cuda::WordOperation> operations) {
  KOLO_ENTER("word_operations")
  FakeStream* const queue = stream_here(stream);
  if (queue == nullptr) return cuda::kInvalidHandle;
  if (operations.size() > cuda::kMostWordOperations) return cuda::kInvalidValue;
  for (const cuda::WordOperation& operation : operations)
    give(*queue, [this, operation] { return run_word(operation); });
  machine_.run_if_at_once();
  return 0;
}

// False: a wait whose word is not there yet.
bool FakeDriver::run_word(const cuda::WordOperation& operation) {
  const bool is_wait = operation.kind == cuda::WordOperation::kWait;
  std::byte* const at = resolve(operation.word, sizeof(operation.value),
                                is_wait ? "wait for a word" : "write a word");
  if (at == nullptr) return true;
  if (is_wait) return static_cast<std::int64_t>(load(at) - operation.value) >= 0;
  if (operation.kind == cuda::WordOperation::kWriteLow) {
    store(at, static_cast<std::uint32_t>(operation.value));
  } else {
    store(at, operation.value);
  }
  return true;
}

int FakeDriver::create_event(cuda::Event* event, unsigned) {
  KOLO_ENTER("create_event")
  all_events_.push_back(std::make_unique<Event>());
  events_.insert(all_events_.back().get());
  *event = all_events_.back().get();
  return 0;
}

int FakeDriver::destroy_event(cuda::Event event) {
  KOLO_ENTER("destroy_event")
  if (events_.erase(static_cast<Event*>(event)) == 0) violate("an event destroyed twice");
  return 0;
}

int FakeDriver::record_event(cuda::Event event, cuda::Stream stream) {
  KOLO_ENTER("record_event")
  FakeStream* const queue = stream_here(stream);
  if (queue == nullptr) return cuda::kInvalidHandle;
  auto* const recorded = static_cast<Event*>(event);
  recorded->capture = queue->capture == nullptr ? 0 : queue->capture->number;
  if (queue->capture != nullptr) return 0;
  const std::uint64_t number = ++recorded->recorded;
  give(*queue, [recorded, number] {
    recorded->done = number;
    return true;
  });
  machine_.run_if_at_once();
  return 0;
}

int FakeDriver::query_event(cuda::Event event) {
  KOLO_ENTER("query_event")
  if (played::pushed_device() < 0) return cuda::kInvalidContext;
  machine_.run_if_at_once();
  const auto* const queried = static_cast<Event*>(event);
  if (queried->capture != 0) {
    violate("query_event of what was captured");
    return played::kCapturedEvent;
  }
  return queried->done == queried->recorded ? 0 : cuda::kNotReady;
}

bool FakeDriver::has_reached(cuda::Event event) {
  const std::lock_guard lock(machine_.mutex_);
  machine_.run_if_at_once();
  const auto* const reached = static_cast<Event*>(event);
  return reached->done == reached->recorded;
}

int FakeDriver::wait_event(cuda::Stream stream, cuda::Event event) {
  KOLO_ENTER("wait_event")
  FakeStream* const queue = stream_of(stream);
  if (queue == nullptr) return cuda::kInvalidHandle;
  const auto* const waited = static_cast<Event*>(event);
  if (queue->capture != nullptr || waited->capture != 0) return wait_in_capture(*queue, *waited);
  const std::uint64_t number = waited->recorded;
  give(*queue, [waited, number] { return waited->done >= number; });
  machine_.run_if_at_once();
  return 0;
}

}  // namespace kolo::test
