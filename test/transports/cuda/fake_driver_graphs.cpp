// The fake driver's graph captures and launches.
#include <algorithm>
#include <array>
#include <string_view>

#include "test/transports/cuda/fake_driver_internals.h"

namespace kolo::test {

namespace {

// The driver's values: 0 global, 1 thread-local, 2 relaxed.
thread_local int capture_mode = 0;

// Calls that may wait for the device or change its memory.
constexpr std::array<std::string_view, 9> kUnsafe = {
    "allocate",        "free",     "allocate_host", "free_host",  "register_host",
    "unregister_host", "ipc_open", "ipc_close",     "query_event"};

}  // namespace

void FakeDriver::capture(cuda::Stream stream) {
  const std::lock_guard lock(machine_.mutex_);
  graphs_.push_back(std::make_unique<FakeGraph>());
  graphs_.back()->number = ++machine_.last_capture_;
  static_cast<FakeStream*>(stream)->capture = graphs_.back().get();
}

FakeGraph* FakeDriver::end_capture(cuda::Stream stream) {
  const std::lock_guard lock(machine_.mutex_);
  FakeGraph* const graph = static_cast<FakeStream*>(stream)->capture;
  for (const auto& joined : machine_.streams_) {
    if (joined->capture == graph) joined->capture = nullptr;
  }
  return graph;
}

void FakeDriver::replay(const FakeGraph& graph, cuda::Stream stream) {
  const std::lock_guard lock(machine_.mutex_);
  FakeStream* const queue = stream_of(stream);
  if (queue == nullptr) return;
  require_room(*queue);
  const std::uint64_t launched = ++machine_.last_work_;
  for (const FakeWork& work : graph.work) queue->queue.push_back({work.try_run, launched});
  machine_.run_if_at_once();
}

int FakeDriver::call_other(const std::string& function) {
  const std::lock_guard lock(machine_.mutex_);
  return enter(function.c_str());
}

void FakeDriver::require_beside_capture(const std::string& function) {
  const std::lock_guard lock(machine_.mutex_);
  if (has_capture(0) && capture_mode == 0) violate(function + " while a stream is being captured");
}

// Whether a capture is active; 0: any capture.
bool FakeDriver::has_capture(std::uint64_t number) const {
  return std::ranges::any_of(machine_.streams_, [&](const auto& stream) {
    return stream->owner == this && stream->capture != nullptr &&
           (number == 0 || stream->capture->number == number);
  });
}

bool FakeDriver::is_beside_capture(const std::string& function) {
  const bool is_unsafe = std::ranges::find(kUnsafe, function) != kUnsafe.end();
  if (!is_unsafe || capture_mode != 0 || !has_capture(0)) return true;
  violate(function + " while a stream is being captured");
  return false;
}

void FakeDriver::give(FakeStream& stream, std::function<bool()> work) {
  if (stream.capture != nullptr) {
    stream.capture->work.push_back({std::move(work)});
  } else {
    require_room(stream);
    stream.queue.push_back({std::move(work), ++machine_.last_work_});
  }
}

// On a device the call would block until the stream has done some of its work.
void FakeDriver::require_room(FakeStream& stream) {
  if (stream.queue.size() < machine_.most_pending || stream.is_overfull) return;
  machine_.run_locked();
  stream.is_overfull = stream.queue.size() >= machine_.most_pending;
  if (stream.is_overfull) violate("more work for a stream whose queue is full and blocked");
}

// The recorded order of calls already satisfies the graph, so no wait is needed.
int FakeDriver::wait_in_capture(FakeStream& stream, const Event& event) {
  const bool goes_on = event.capture != 0 && has_capture(event.capture);
  if (!goes_on || (stream.capture != nullptr && stream.capture->number != event.capture)) {
    violate("wait_event between a capture and what is not in it");
    return played::kCaptureIsolation;
  }
  const auto captured = std::ranges::find_if(
      graphs_, [&event](const auto& graph) { return graph->number == event.capture; });
  stream.capture = captured->get();
  return 0;
}

int FakeDriver::capture_of(cuda::Stream stream, int* status, std::uint64_t* number) {
  KOLO_ENTER("capture_of")
  const FakeStream* const queue = stream_of(stream);
  if (queue == nullptr) return cuda::kInvalidHandle;
  *status = queue->capture != nullptr ? 1 : 0;
  if (queue->capture != nullptr) *number = queue->capture->number;
  return 0;
}

int FakeDriver::exchange_capture_mode(int* mode) {
  KOLO_ENTER("exchange_capture_mode")
  std::swap(*mode, capture_mode);
  return 0;
}

}  // namespace kolo::test
