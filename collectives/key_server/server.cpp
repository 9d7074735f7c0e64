#include "collectives/key_server/server.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "transports/base/check.h"
#include "transports/error.h"

namespace kolo::inline v0::key_server {
namespace {

std::size_t longest_key(const KeyPlan& plan) {
  std::size_t longest = 0;
  for (const Key& key : plan.keys) longest = std::max(longest, key.count);
  return longest;
}

}  // namespace

Server::Server(Communicator& communicator, const KeyPlan& plan, std::span<float> values,
               const KeyUpdateFunction& update, const KeyServerOptions& options)
    : communicator_(communicator),
      plan_(plan),
      options_(options),
      keys_(plan.keys.size()),
      snapshots_(plan.keys.size()),
      buffers_(longest_key(plan)) {
  check_plan(plan, communicator.size());
  check(is_server(plan, communicator.rank()),
        fmt::format("serve_keys: rank {} is no server of the plan", communicator.rank()));
  check(values.size() == plan.elements,
        fmt::format("serve_keys: {} values for an arena of {} elements", values.size(),
                    plan.elements));
  check(update != nullptr, "serve_keys: no function to call");
  check(options.first_iteration >= 0, "serve_keys: a first iteration below 0");
  for (int rank = 0; rank < communicator.size(); ++rank) {
    if (!is_server(plan, rank)) ranks_.push_back(rank);
  }
  check_rule(options.consistency, ranks_.size());
  if (options_.timeout.count() <= 0) options_.timeout = communicator.timeout();
  for (const int rank : ranks_) workers_.emplace_back().rank = rank;
  for (std::size_t i = 0; i < keys_.size(); ++i) {
    const Key& key = plan.keys[i];
    if (key.server != communicator.rank()) continue;
    keys_[i] = std::make_unique<ServedKey>(i, values.subspan(key.first, key.count), ranks_,
                                           options_, update, statistics_);
  }
}

KeyServerStatistics Server::run() {
  for (Worker& worker : workers_) expect_header(worker);
  last_arrival_ = last_sign_ = Clock::now();
  while (!is_over()) {
    if (Clock::now() - last_sign_ >= options_.timeout / 4) send_signs();
    const Deadline limit =
        std::min(last_arrival_ + options_.timeout, last_sign_ + options_.timeout / 4);
    if (!serve_one(limit)) look_after(limit);
  }
  return statistics_;
}

bool Server::is_over() const {
  return std::ranges::all_of(workers_, [](const Worker& worker) {
    return worker.has_finished && !worker.answer && worker.answered.empty();
  });
}

// Handles the next message. The worker that was served last is served again after all others.
bool Server::serve_one(Deadline limit) {
  awaited_.clear();
  for (std::size_t i = 0; i < workers_.size(); ++i) {
    const Worker& worker = workers_[(next_worker_ + i) % workers_.size()];
    awaited_.push_back(worker.receives.empty() ? Work() : worker.receives.front().work);
    awaited_.push_back(worker.answer ? worker.answer->work : Work());
  }
  const auto start = Clock::now();
  const auto ended = wait_any(awaited_, limit);
  statistics_.idle_seconds += std::chrono::duration<double>(Clock::now() - start).count();
  if (!ended) return false;
  awaited_[*ended].wait();  // throws its failure
  const std::size_t index = (next_worker_ + *ended / 2) % workers_.size();
  if (*ended % 2 == 1) {
    end_answer(workers_[index]);
    return true;
  }
  next_worker_ = (index + 1) % workers_.size();
  handle_receive(index);
  last_arrival_ = Clock::now();
  return true;
}

// Tells workers whose answers are held back that the server is alive.
void Server::send_signs() {
  last_sign_ = Clock::now();
  for (Worker& worker : workers_) {
    if (!worker.held.empty() && !worker.answer) send_waiting(worker);
  }
}

// No message came until `limit`: gives up after the timeout.
void Server::look_after(Deadline limit) {
  const auto now = Clock::now();
  if (now - limit >= kAway) last_arrival_ = now;
  if (now - last_arrival_ >= options_.timeout) give_up();
}

void Server::expect_header(Worker& worker) {
  worker.receives.push_back(
      {communicator_.receive_async(worker.header.bytes(), worker.rank, kWithoutTimeout), 0});
}

void Server::handle_receive(std::size_t index) {
  Worker& worker = workers_[index];
  const std::size_t arrived = worker.receives.front().arrived;
  worker.receives.pop_front();
  if (arrived == 0) return handle_request(index);
  const std::size_t key = worker.pushed_key;
  served(key).arrive(index, arrived);
  if (arrived < served(key).count()) return;
  if (worker.wants_answer) worker.held.insert(key);
  release(key);
}

void Server::handle_request(std::size_t index) {
  Worker& worker = workers_[index];
  const Message& request = worker.header;
  const std::string fault = fault_of_request(request, plan_, communicator_.rank());
  if (!fault.empty()) refuse(worker, fault);
  if (request.kind == MessageKind::kFinish) return handle_finish(index);
  if (has_gradient(request.kind)) {
    begin_gradient(index);
  } else {
    worker.held.insert(request.key);
    release(request.key);
  }
  expect_header(worker);
}

void Server::handle_finish(std::size_t index) {
  Worker& worker = workers_[index];
  if (!worker.held.empty() || !worker.answered.empty())
    refuse(worker, "its end, before its pulls were answered");
  worker.has_finished = true;
  for (std::size_t key = 0; key < keys_.size(); ++key) {
    if (keys_[key] == nullptr) continue;
    served(key).finish(index);
    release(key);
  }
}

void Server::begin_gradient(std::size_t index) {
  Worker& worker = workers_[index];
  const Message& request = worker.header;
  ServedKey& key = served(request.key);
  const std::string fault = key.fault_of_push(index, request.iteration);
  if (!fault.empty()) refuse(worker, fault);
  worker.pushed_key = request.key;
  worker.wants_answer = wants_answer(request.kind);
  const std::shared_ptr<float[]> memory = buffers_.take();
  key.begin(index, request.iteration, memory, request.samples);
  for (std::size_t first = 0; first < key.count(); first += kFragment) {
    const std::size_t count = std::min(kFragment, key.count() - first);
    worker.receives.push_back({communicator_.receive_async(std::span(memory.get() + first, count),
                                                           worker.rank, kWithoutTimeout),
                               first + count});
  }
}

// Sends the answers of the key that the rule permits by now.
void Server::release(std::size_t key) {
  for (std::size_t index = 0; index < workers_.size(); ++index) {
    Worker& worker = workers_[index];
    if (!worker.held.contains(key) || !served(key).may_answer(index)) continue;
    worker.held.erase(key);
    worker.answered.insert(key);
    send_next(worker);
  }
}

void Server::send_next(Worker& worker) {
  if (worker.answer || worker.answered.empty()) return;
  const std::size_t number = *worker.answered.begin();
  worker.answered.erase(worker.answered.begin());
  ServedKey& key = served(number);
  Snapshot& snapshot = snapshots_[number];
  if (snapshot.values == nullptr || snapshot.updates != key.updates()) {
    snapshot = {buffers_.take(), key.updates()};
    std::ranges::copy(key.values(), snapshot.values.get());
  }
  Answer& answer = worker.answer.emplace();
  answer.header = message_of(MessageKind::kAnswer, plan_, number);
  answer.header.iteration = key.first_open_iteration();
  answer.key = number;
  answer.values = snapshot.values;
  communicator_.send_async(answer.header.bytes(), worker.rank, kWithoutTimeout);
  answer.work = communicator_.send_async(std::span(answer.values.get(), key.count()), worker.rank,
                                         kWithoutTimeout);
  const auto index = static_cast<std::size_t>(&worker - workers_.data());
  key.note_answer(index);
  ++statistics_.answers;
}

void Server::send_waiting(Worker& worker) {
  Answer& answer = worker.answer.emplace();
  answer.key = *worker.held.begin();
  answer.header = message_of(MessageKind::kWaiting, plan_, answer.key);
  answer.work = communicator_.send_async(answer.header.bytes(), worker.rank, kWithoutTimeout);
}

void Server::end_answer(Worker& worker) {
  Snapshot& snapshot = snapshots_[worker.answer->key];
  worker.answer.reset();
  // Held by the pool and here alone: later answers of this key are rare.
  if (snapshot.values.use_count() == 2) snapshot = {};
  send_next(worker);
}

// Names the workers that may still send. If all wait for answers, it names all that have not ended.
void Server::give_up() {
  std::vector<int> late;
  std::vector<int> left;
  for (const Worker& worker : workers_) {
    if (!worker.has_finished && worker.held.empty()) late.push_back(worker.rank);
    if (!worker.has_finished || worker.answer) left.push_back(worker.rank);
  }
  if (late.empty()) late = left;
  const double seconds = std::chrono::duration<double>(options_.timeout).count();
  communicator_.abort(
      ErrorCode::kDeadline, late.front(),
      fmt::format("the key server has got no message for {:.1f} s; it waits for {} {}: alive, and "
                  "still to push or to finish?",
                  seconds, late.size() == 1 ? "worker rank" : "worker ranks",
                  fmt::join(late, ", ")));
  throw communicator_.failure().value();
}

void Server::refuse(const Worker& worker, std::string_view fault) {
  communicator_.abort(ErrorCode::kMismatch, worker.rank,
                      fmt::format("worker rank {} sent {}", worker.rank, fault));
  throw communicator_.failure().value();
}

}  // namespace kolo::inline v0::key_server

namespace kolo::inline v0 {

KeyServerStatistics serve_keys(Communicator& communicator, const KeyPlan& plan,
                               std::span<float> values, const KeyUpdateFunction& update,
                               const KeyServerOptions& options) {
  key_server::Server server(communicator, plan, values, update, options);
  // An abort ends the operations in flight, which use the server's memory.
  try {
    return server.run();
  } catch (const std::exception& error) {
    communicator.abort(error.what());
    throw communicator.failure().value();
  } catch (...) {
    communicator.abort("an exception was thrown that is no std::exception");
    throw communicator.failure().value();
  }
}

}  // namespace kolo::inline v0
