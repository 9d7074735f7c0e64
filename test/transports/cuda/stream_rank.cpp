#include "test/transports/cuda/stream_rank.h"

#include <algorithm>
#include <stdexcept>
#include <thread>
#include <utility>

#include "transports/cuda/library.h"

namespace kolo::test {

namespace {

constexpr std::size_t kBounceBytes = 64 * 1024;
constexpr std::chrono::seconds kPatienceAtEnd{20};  // of transports

std::unique_ptr<Transport> make(const StreamKind& kind, const StreamMachine& machine,
                                const TransportRequest& request) {
  const auto make_host = [&kind](const TransportRequest& beneath) {
    return make_transport(kind.host, beneath);
  };
  if (kind.is_staged) {
    StagedSettings settings;
    settings.device = 0;
    settings.driver = machine.driver;
    settings.longest_segment_bytes = kStreamSegment;
    settings.patience = kPatienceAtEnd;
    return make_staged(make_host(request), settings);
  }
  CudaIpcSettings settings;
  settings.device = 0;
  settings.driver = machine.driver;
  settings.segment_bytes = kStreamSegment;
  settings.patience = kPatienceAtEnd;
  settings.process = machine.process;
  settings.make_host = make_host;
  return make_cuda_ipc(request, settings);
}

}  // namespace

StreamMachine fake_machine(const std::shared_ptr<FakeDriver>& driver, const std::string& process) {
  const auto allocate_closed = [driver](const std::shared_ptr<cuda::Device>& device,
                                        std::size_t bytes) {
    return std::shared_ptr<std::byte>(driver->make_memory(bytes, FakeDriver::Kind::kPool),
                                      [device](std::byte* memory) { device->free(memory); });
  };
  return {driver, allocate_closed, process};
}

StreamMachine installed_machine() {
  const auto allocate_closed = [](const std::shared_ptr<cuda::Device>& device, std::size_t bytes) {
    return std::shared_ptr<std::byte>(device->allocate_host(bytes),
                                      [device](std::byte* memory) { device->free_host(memory); });
  };
  return {cuda::installed_driver(), allocate_closed, "", std::chrono::seconds(30)};
}

StreamRank::StreamRank(const StreamKind& kind, const StreamMachine& machine, int rank, int size,
                       std::shared_ptr<Store> store)
    : rank_(rank),
      size_(size),
      store_(std::move(store)),
      machine_(machine),
      device_(std::make_shared<cuda::Device>(machine.driver, 0)),
      side_(device_->make_stream()),
      side_event_(device_->make_event()),
      event_(device_->make_event()),
      bounce_(device_->allocate_host(kBounceBytes)),
      bounce_there_(device_->seen_by_device(bounce_)),
      side_memory_(device_->allocate(kBounceBytes)) {
  const TransportRequest request{
      rank, size, prefixed(store_, "transport/"), Clock::now() + machine.patience, 0, size};
  transport_ = make(kind, machine, request);
  stream_ = make_stream();
  for (int peer = 0; peer < size; ++peer) {
    if (peer != rank) stream(peer);  // as a communicator does before its first call
  }
}

StreamRank::~StreamRank() {
  transport_.reset();
  for (const cuda::Stream stream : other_streams_) device_->destroy_stream(stream);
  device_->destroy_stream(side_);
  device_->destroy_event(side_event_);
  device_->destroy_event(event_);
  device_->free_host(bounce_);
  device_->free(side_memory_);
}

// As a caller makes it, without the priority of cuda::Device::make_stream().
cuda::Stream StreamRank::make_stream() {
  const cuda::Device::Entered here(*device_);
  cuda::Stream stream = nullptr;
  if (machine_.driver->create_stream(&stream, cuda::kIndependentStream, 0) != cuda::kSuccess)
    throw std::runtime_error("no stream");
  other_streams_.push_back(stream);
  return stream;
}

void StreamRank::change_stream() {
  std::erase(other_streams_, stream_);
  device_->destroy_stream(stream_);
  stream_ = make_stream();
}

void StreamRank::begin() {
  for (int peer = 0; peer < size_; ++peer) {
    if (peer != rank_) stream(peer).begin(on());
  }
}

void StreamRank::end() {
  for (int peer = 0; peer < size_; ++peer) {
    if (peer != rank_) stream(peer).end(on());
  }
}

// Without progress, which may throw the error of a lost peer.
void StreamRank::wait_beside() {
  device_->record(side_event_, side_);
  const Deadline deadline = Clock::now() + machine_.patience;
  while (!device_->has_come(side_event_)) {
    if (Clock::now() > deadline)
      throw std::runtime_error("another stream of the device waits too, and it has only copies");
    std::this_thread::yield();
  }
}

std::byte* StreamRank::memory(std::size_t bytes, int seed, Memory kind) {
  const std::size_t allocated = std::max<std::size_t>(bytes, 1);
  if (kind == Memory::kClosed) {
    memory_.push_back(machine_.allocate_closed(device_, allocated));
  } else {
    memory_.emplace_back(device_->allocate(allocated),
                         [device = device_](std::byte* freed) { device->free(freed); });
  }
  std::byte* const made = memory_.back().get();
  for (std::size_t done = 0; done < bytes; done += kBounceBytes) {
    const std::size_t piece = std::min(bytes - done, kBounceBytes);
    for (std::size_t i = 0; i < piece; ++i) bounce_[i] = StreamRanks::value(done + i, seed);
    device_->copy(made + done, bounce_there_, piece, side_);
    wait_beside();
  }
  return made;
}

bool StreamRank::is_filled(const std::byte* memory, std::size_t bytes, int seed) {
  for (std::size_t done = 0; done < bytes; done += kBounceBytes) {
    const std::size_t piece = std::min(bytes - done, kBounceBytes);
    device_->copy(bounce_there_, memory + done, piece, side_);
    wait_beside();
    for (std::size_t i = 0; i < piece; ++i) {
      if (bounce_[i] != StreamRanks::value(done + i, seed)) return false;
    }
  }
  return true;
}

void StreamRank::copy(std::byte* to, const std::byte* from, std::size_t bytes) {
  device_->copy(to, from, bytes, on());
}

void StreamRank::commit(int to, const std::byte* data, std::size_t bytes) {
  std::byte* slot = nullptr;
  until([&] { return (slot = stream(to).reserve(on(), bytes)) != nullptr; }, "a slot");
  copy(slot, data, bytes);
  stream(to).commit(on(), kPlain);
}

void StreamRank::view(int from, std::byte* into, std::size_t bytes) {
  const std::byte* segment = nullptr;
  until([&] { return (segment = stream(from).view(on(), bytes)) != nullptr; }, "a view");
  copy(into, segment, bytes);
  stream(from).release(on());
}

void StreamRank::send(int to, std::span<const std::byte> data) {
  until([&] { return stream(to).send(on(), data, kPlain); }, "a send");
}

void StreamRank::receive(int from, std::span<std::byte> into) {
  until([&] { return stream(from).receive(on(), into, kPlain); }, "a receive");
}

const std::byte* StreamRank::view_sent(int from, std::size_t bytes) {
  const std::byte* segment = nullptr;
  until([&] { return (segment = stream(from).view_sent(on(), bytes)) != nullptr; },
        "a view of memory that was sent");
  return segment;
}

void StreamRank::until(const std::function<bool()>& is_done, std::string_view what) {
  const Deadline deadline = Clock::now() + machine_.patience;
  while (!is_done()) {
    if (is_open_) transport_->progress();
    device_->is_done(side_event_);  // a fake driver runs its streams when it is called
    if (const auto failure = store_->failure())
      throw std::runtime_error("waits for " + std::string(what) + ", but: " + *failure);
    if (Clock::now() > deadline)
      throw std::runtime_error("expected: " + std::string(what) + " within " +
                               std::to_string(machine_.patience.count()) + " s");
    std::this_thread::yield();
  }
}

void StreamRank::finish() {
  device_->record(event_, on());
  until([&] { return device_->has_come(event_); }, "the end of the stream's work");
}

bool StreamRank::is_waiting() {
  device_->record(event_, on());
  device_->copy(side_memory_, bounce_there_, kBounceBytes, side_);
  wait_beside();
  return !device_->has_come(event_);
}

Error StreamRank::error_of_progress() {
  const Deadline deadline = Clock::now() + machine_.patience;
  while (Clock::now() < deadline) {
    if (const auto error = error_of([&] { transport().progress(); })) return *error;
    std::this_thread::yield();
  }
  throw std::runtime_error("expected: an error of progress()");
}

// In two steps. A rank that has left may close its transport, and then progress() of a rank that
// has not noticed that all have come would throw. So the second step makes no progress.
void StreamRank::meet() {
  const bool was_open = is_open_;
  for (const bool makes_progress : {true, false}) {
    const std::string key = "met " + std::to_string(++meetings_);
    store_->add(key, 1);
    is_open_ = was_open && makes_progress;
    until([&] { return store_->add(key, 0) >= size_; }, "all ranks at one point");
  }
  is_open_ = was_open;
}

void StreamRank::quiesce() {
  is_open_ = false;
  transport_->quiesce();
}

void StreamRank::drop_transport() {
  is_open_ = false;
  transport_.reset();
}

void StreamRank::close() {
  meet();
  drop_transport();
  meet();
  memory_.clear();
}

}  // namespace kolo::test
