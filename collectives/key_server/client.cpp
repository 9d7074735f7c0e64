// Client of key servers.
//
// Per server two gradients are in transfer at most; other requests wait, and the key of highest
// priority goes next. The server chooses the order of its answers. So the client receives a header
// first, and then the values into their place.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "collectives/key_server.h"
#include "collectives/key_server/message.h"
#include "transports/base/check.h"
#include "transports/error.h"

namespace kolo::inline v0 {
namespace {

using key_server::Message;
using key_server::MessageKind;

constexpr std::size_t kMostSends = 2;

using key_server::kAway;
using key_server::kWithoutTimeout;

struct Request {
  bool is_unsent = false;
  bool is_unanswered = false;
  Message header;
  std::span<const float> gradient;
  std::span<float> values;
};

struct Send {
  std::size_t key;
  Work work;  // the last message
};

struct Server {
  int rank = 0;
  std::set<std::size_t> queued;
  std::deque<Send> sends;
  std::size_t unanswered = 0;  // requests that were sent and whose answer has not arrived
  Message header;              // of the next answer
  Work header_work;
  std::optional<std::size_t> arriving;  // key whose values arrive
  Work values_work;
  Message finish;
  Deadline last_sign{};
};

}  // namespace

class KeyClient::State {
 public:
  State(Communicator& communicator, KeyPlan plan, std::chrono::milliseconds timeout)
      : communicator_(communicator),
        plan_(std::move(plan)),
        timeout_(timeout.count() > 0 ? timeout : communicator.timeout()),
        requests_(plan_.keys.size()) {
    key_server::check_plan(plan_, communicator.size());
    check(!key_server::is_server(plan_, communicator.rank()),
          fmt::format("rank {} is a server of the key plan: it cannot be a worker",
                      communicator.rank()));
    for (const int rank : plan_.servers) servers_.emplace_back().rank = rank;
    for (const Key& key : plan_.keys) {
      const auto place = std::ranges::find(plan_.servers, key.server) - plan_.servers.begin();
      server_of_.push_back(static_cast<std::size_t>(place));
    }
  }

  ~State() {
    const auto busy = std::ranges::find_if(requests_, is_in_flight);
    if (busy == requests_.end()) return;
    try {
      communicator_.abort(fmt::format("a key client was destroyed with key {} in flight",
                                      busy - requests_.begin()));
    } catch (...) {
      // The job fails without this text.
    }
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  void request(MessageKind kind, std::size_t key, std::int64_t iteration,
               std::span<const float> gradient, double samples, std::span<float> values);
  bool test(std::size_t key);
  void wait(std::size_t key);
  void progress();
  void finish();
  std::size_t keys() const { return requests_.size(); }

  KeyClientStatistics statistics;
  std::int64_t next_iteration = 0;

 private:
  static bool is_in_flight(const Request& request) {
    return request.is_unsent || request.is_unanswered;
  }
  void check_key(std::size_t key) const;
  void check_length(std::size_t key, std::size_t count, std::string_view what) const;
  void pump(Server& server);
  void send(Server& server, std::size_t key);
  void read_header(Server& server);
  void wait_for_any(const Server& server, Deadline start);
  [[noreturn]] void fail(ErrorCode code, const Server& server, std::string_view text);

  Communicator& communicator_;
  KeyPlan plan_;
  std::chrono::milliseconds timeout_;
  std::vector<Request> requests_;       // by key
  std::vector<std::size_t> server_of_;  // by key
  std::deque<Server> servers_;
  std::vector<Work> awaited_;
};

void KeyClient::State::check_key(std::size_t key) const {
  check(key < keys(), fmt::format("there is no key {}: the plan has {}", key, keys()));
}

void KeyClient::State::check_length(std::size_t key, std::size_t count,
                                    std::string_view what) const {
  check(count == plan_.keys[key].count, fmt::format("{} elements are no {} of key {}, which has {}",
                                                    count, what, key, plan_.keys[key].count));
}

void KeyClient::State::request(MessageKind kind, std::size_t key, std::int64_t iteration,
                               std::span<const float> gradient, double samples,
                               std::span<float> values) {
  check_key(key);
  if (key_server::has_gradient(kind)) {
    check_length(key, gradient.size(), "gradient");
    check(std::isfinite(samples) && samples >= 0,
          fmt::format("a gradient over {} samples", samples));
    check(iteration >= 0, fmt::format("a push in iteration {}", iteration));
  }
  if (key_server::wants_answer(kind)) check_length(key, values.size(), "values");
  Request& request = requests_[key];
  if (is_in_flight(request)) progress();
  check(!is_in_flight(request), fmt::format("key {} is in flight: wait for it first", key));
  request = {true, key_server::wants_answer(kind), key_server::message_of(kind, plan_, key),
             gradient, values};
  request.header.iteration = iteration;
  request.header.samples = samples;
  if (key_server::has_gradient(kind)) {
    ++statistics.pushes;
    next_iteration = std::max(next_iteration, iteration + 1);
  }
  Server& server = servers_[server_of_[key]];
  server.queued.insert(key);
  pump(server);
}

// Handles everything of this server that has ended, and starts what can start.
void KeyClient::State::pump(Server& server) {
  const auto has_ended = [&](Work& work) {
    if (!work.is_valid() || !work.test()) return false;
    work.wait();  // throws its failure
    server.last_sign = Clock::now();
    return true;
  };
  for (;;) {
    while (!server.sends.empty() && has_ended(server.sends.front().work)) {
      requests_[server.sends.front().key].is_unsent = false;
      server.sends.pop_front();
    }
    while (server.sends.size() < kMostSends && !server.queued.empty()) {
      const std::size_t key = *server.queued.begin();
      server.queued.erase(server.queued.begin());
      send(server, key);
    }
    if (has_ended(server.values_work)) {
      server.values_work = {};
      requests_[*std::exchange(server.arriving, std::nullopt)].is_unanswered = false;
      --server.unanswered;
      ++statistics.answers;
    }
    if (has_ended(server.header_work)) {
      server.header_work = {};
      read_header(server);
      continue;
    }
    if (server.unanswered > 0 && !server.values_work.is_valid() && !server.header_work.is_valid()) {
      server.header_work =
          communicator_.receive_async(server.header.bytes(), server.rank, kWithoutTimeout);
      continue;
    }
    return;
  }
}

void KeyClient::State::send(Server& server, std::size_t key) {
  Request& request = requests_[key];
  Work work = communicator_.send_async(request.header.bytes(), server.rank, kWithoutTimeout);
  if (key_server::has_gradient(request.header.kind)) {
    for (std::size_t first = 0; first < request.gradient.size(); first += key_server::kFragment) {
      const std::size_t count = std::min(key_server::kFragment, request.gradient.size() - first);
      work = communicator_.send_async(request.gradient.subspan(first, count), server.rank,
                                      kWithoutTimeout);
    }
  }
  server.sends.push_back({key, work});
  if (request.is_unanswered) ++server.unanswered;
}

// The header of an answer has arrived: its values follow.
void KeyClient::State::read_header(Server& server) {
  const Message& answer = server.header;
  const std::string fault = key_server::fault_of_answer(answer, plan_, server.rank);
  if (!fault.empty()) fail(ErrorCode::kMismatch, server, "sent " + fault);
  if (answer.kind == MessageKind::kWaiting) return;
  Request& request = requests_[answer.key];
  if (!request.is_unanswered) {
    fail(ErrorCode::kMismatch, server,
         fmt::format("sent key {}, which was not pulled", answer.key));
  }
  next_iteration = std::max(next_iteration, answer.iteration);
  server.arriving = answer.key;
  server.values_work = communicator_.receive_async(request.values, server.rank, kWithoutTimeout);
}

void KeyClient::State::progress() {
  for (Server& server : servers_) pump(server);
}

bool KeyClient::State::test(std::size_t key) {
  check_key(key);
  if (is_in_flight(requests_[key])) progress();
  return !is_in_flight(requests_[key]);
}

void KeyClient::State::wait(std::size_t key) {
  check_key(key);
  if (!is_in_flight(requests_[key])) return;
  const auto start = Clock::now();
  for (progress(); is_in_flight(requests_[key]); progress())
    wait_for_any(servers_[server_of_[key]], start);
  statistics.waiting_seconds += std::chrono::duration<double>(Clock::now() - start).count();
}

// Waits for the next message of any server. Fails if `server` was silent for the timeout, within a
// wait that began at `start`.
void KeyClient::State::wait_for_any(const Server& server, Deadline start) {
  awaited_.clear();
  for (const Server& each : servers_) {
    if (!each.sends.empty()) awaited_.push_back(each.sends.front().work);
    awaited_.push_back(each.header_work);
    awaited_.push_back(each.values_work);
  }
  const Deadline limit = std::max(start, server.last_sign) + timeout_;
  if (wait_any(awaited_, limit)) return;
  const auto now = Clock::now();
  if (now - limit >= kAway) {  // this rank was stopped
    for (Server& each : servers_) each.last_sign = now;
    return;
  }
  fail(ErrorCode::kDeadline, server,
       fmt::format("has sent nothing for {:.1f} s: is it alive, and does it serve keys?",
                   std::chrono::duration<double>(timeout_).count()));
}

void KeyClient::State::finish() {
  for (std::size_t key = 0; key < keys(); ++key) wait(key);
  const auto start = Clock::now();
  for (Server& server : servers_) {
    server.finish.kind = MessageKind::kFinish;
    server.values_work =
        communicator_.send_async(server.finish.bytes(), server.rank, kWithoutTimeout);
  }
  for (Server& server : servers_) {
    while (!server.values_work.test()) wait_for_any(server, start);
    std::exchange(server.values_work, {}).wait();
  }
  statistics.waiting_seconds += std::chrono::duration<double>(Clock::now() - start).count();
}

void KeyClient::State::fail(ErrorCode code, const Server& server, std::string_view text) {
  communicator_.abort(code, server.rank, fmt::format("key server rank {} {}", server.rank, text));
  throw communicator_.failure().value();
}

KeyClient::KeyClient(Communicator& communicator, KeyPlan plan, std::chrono::milliseconds timeout)
    : state_(std::make_unique<State>(communicator, std::move(plan), timeout)) {}

KeyClient::~KeyClient() = default;

void KeyClient::push(std::size_t key, std::int64_t iteration, std::span<const float> gradient,
                     double samples) {
  state_->request(MessageKind::kPush, key, iteration, gradient, samples, {});
}

void KeyClient::pull(std::size_t key, std::span<float> values) {
  state_->request(MessageKind::kPull, key, 0, {}, 0, values);
}

void KeyClient::push_pull(std::size_t key, std::int64_t iteration, std::span<const float> gradient,
                          double samples, std::span<float> values) {
  state_->request(MessageKind::kPushPull, key, iteration, gradient, samples, values);
}

bool KeyClient::test(std::size_t key) { return state_->test(key); }

void KeyClient::wait(std::size_t key) { state_->wait(key); }

void KeyClient::wait_all() {
  for (std::size_t key = 0; key < state_->keys(); ++key) state_->wait(key);
}

void KeyClient::progress() { state_->progress(); }

std::int64_t KeyClient::next_iteration() const { return state_->next_iteration; }

void KeyClient::finish() { state_->finish(); }

KeyClientStatistics KeyClient::statistics() const { return state_->statistics; }

}  // namespace kolo::inline v0
