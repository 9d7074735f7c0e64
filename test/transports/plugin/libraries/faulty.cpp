// Transport between threads of one process, through queues behind a lock. It keeps the contract,
// except for one fault that an option chooses: "?corrupt", "?overtake", "?crash", "?hang",
// "?forget" or "?refuse".
#include <algorithm>
#include <condition_variable>
#include <csignal>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "transports/plugin.h"

namespace {

constexpr std::size_t kQueueHolds = 8;

struct Office {
  std::mutex mutex;
  std::map<std::pair<int, int>, std::deque<std::vector<char>>> queues;
  std::map<int, bool> is_closed;
};

// Shared queues by the number that rank 0 publishes.
std::shared_ptr<Office> office_of(std::uint64_t& number) {
  static std::mutex mutex;
  static std::map<std::uint64_t, std::shared_ptr<Office>> offices;
  static std::uint64_t last = 0;
  const std::lock_guard lock(mutex);
  if (number == 0) offices[number = ++last] = std::make_shared<Office>();
  return offices.at(number);
}

}  // namespace

struct kolo_channel {
  Office* office = nullptr;
  int rank = 0;
  int peer = 0;
  std::string fault;
  std::uint64_t sent = 0;
  bool is_lost = false;
};

struct kolo_transport {
  std::shared_ptr<Office> office;
  int rank = 0;
  std::vector<kolo_channel> channels;
};

namespace {

kolo_status fail(kolo_error* error, int code, int peer, const char* text) {
  error->code = code;
  error->peer = peer;
  std::strncpy(error->text, text, sizeof error->text - 1);
  return KOLO_FAILED;
}

kolo_status make(const kolo_plugin_request* request, kolo_transport** made, kolo_error* error) {
  const kolo_store* const store = request->store;
  std::uint64_t number = 0;
  std::size_t bytes = 0;
  auto transport = std::make_unique<kolo_transport>();
  if (std::strcmp(request->options, "refuse") == 0)
    return fail(error, KOLO_UNAVAILABLE, -1, "the office is closed today");
  if (request->rank == 0) {
    transport->office = office_of(number);
    if (store->set(store, "office", &number, sizeof number, error) != KOLO_DONE) return KOLO_FAILED;
  }
  std::vector<char> here(static_cast<std::size_t>(request->ranks));
  if (store->gather(store, "here", "x", 1, request->deadline_ns, "come to the office", here.data(),
                    error) != KOLO_DONE)
    return KOLO_FAILED;
  if (request->rank != 0) {
    if (store->get(store, "office", request->deadline_ns, &number, sizeof number, &bytes, error) !=
        KOLO_DONE)
      return KOLO_FAILED;
    transport->office = office_of(number);
  }
  transport->rank = request->rank;
  for (int peer = 0; peer < request->ranks; ++peer) {
    transport->channels.push_back({transport->office.get(), request->rank, peer, request->options});
  }
  *made = transport.release();
  return KOLO_DONE;
}

kolo_status send(kolo_channel* channel, const void* data, std::size_t bytes, kolo_error* error) {
  if (channel->fault == "crash") std::raise(SIGSEGV);
  const std::lock_guard lock(channel->office->mutex);
  if (channel->office->is_closed[channel->peer])
    return fail(error, KOLO_PEER_LOST, channel->peer, "it has left the office");
  auto& queue = channel->office->queues[{channel->rank, channel->peer}];
  if (queue.size() == kQueueHolds) return KOLO_NOT_NOW;
  const char* const begin = static_cast<const char*>(data);
  queue.emplace_back(begin, begin + bytes);
  if (channel->fault == "corrupt") queue.back().back() = static_cast<char>(~queue.back().back());
  if (channel->fault == "overtake" && queue.size() > 1)
    std::swap(queue.back(), queue[queue.size() - 2]);
  ++channel->sent;
  return KOLO_DONE;
}

kolo_status completed(kolo_channel* channel, std::uint64_t* messages, kolo_error*) {
  *messages = channel->sent;
  return KOLO_DONE;
}

kolo_status receive(kolo_channel* channel, void* into, std::size_t bytes, kolo_error* error) {
  if (channel->fault == "hang") {
    std::mutex mutex;
    std::unique_lock never(mutex);
    std::condition_variable().wait(never, [] { return false; });
  }
  const std::lock_guard lock(channel->office->mutex);
  auto& queue = channel->office->queues[{channel->peer, channel->rank}];
  if (!queue.empty() && !channel->is_lost) {
    std::memcpy(into, queue.front().data(), std::min(bytes, queue.front().size()));
    queue.pop_front();
    return KOLO_DONE;
  }
  if (!channel->office->is_closed[channel->peer] || channel->fault == "forget") return KOLO_NOT_NOW;
  channel->is_lost = true;
  return fail(error, KOLO_PEER_LOST, channel->peer, "it has left the office");
}

void quiesce(kolo_transport* transport) {
  const std::lock_guard lock(transport->office->mutex);
  transport->office->is_closed[transport->rank] = true;
}

}  // namespace

const kolo_plugin* kolo_transport_plugin() {
  static const kolo_plugin table = [] {
    kolo_plugin made{};
    made.version = KOLO_PLUGIN_VERSION;
    made.size = sizeof made;
    made.name = "faulty";
    made.reach = KOLO_PROCESS;
    made.make = make;
    made.destroy = [](kolo_transport* transport) { std::unique_ptr<kolo_transport>{transport}; };
    made.channel = [](kolo_transport* transport, int peer) {
      return &transport->channels[static_cast<std::size_t>(peer)];
    };
    made.progress = [](kolo_transport*, kolo_error*) { return KOLO_DONE; };
    made.quiesce = quiesce;
    made.send = send;
    made.receive = receive;
    made.completed = completed;
    return made;
  }();
  return &table;
}
