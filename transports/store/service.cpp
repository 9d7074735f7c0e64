#include "transports/store/service.h"

#include <fmt/format.h>
#include <algorithm>
#include <charconv>
#include <iterator>
#include <utility>

#include "transports/error.h"

namespace kolo::inline v0 {

namespace {

using store_wire::Kind;
using store_wire::Message;

constexpr std::size_t kLongestHello = 4096;

// The number at the start of a text; 0: none.
int leading_number(std::string_view text) {
  int number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

}  // namespace

const char* StoreService::hear(std::uint64_t client, std::string_view bytes) {
  const auto found = clients_.find(client);
  if (found == clients_.end()) return nullptr;
  Client& who = found->second;
  who.in.append(bytes);
  try {
    while (true) {
      const bool is_known = !who.who.empty();
      if (!is_known && who.in.size() > kLongestHello) return "sent too many bytes before its hello";
      auto message = store_wire::take(who.in);
      if (!message) return nullptr;
      const char* const why =
          is_known ? serve(client, who, std::move(*message)) : greet(client, who, *message);
      if (why != nullptr) return why;
    }
  } catch (const Error&) {
    return "sent bytes that are not a message of kolo's store";
  }
}

void StoreService::remove(std::uint64_t client, const char* how) {
  const auto found = clients_.find(client);
  if (found == clients_.end()) return;
  const Client lost = std::move(found->second);
  clients_.erase(found);
  forget_waiters([client](const Waiter& waiter) { return waiter.client == client; });
  if (lost.memberships.empty()) return;
  fail(fmt::format("rank {} ({}) is gone: its connection to the store {}; look at its last output",
                   lost.memberships.front().rank, lost.who, how));
  for (const Membership& each : lost.memberships) members_.leave(each.communicator, each.rank);
}

bool StoreService::is_unknown(std::uint64_t client) const {
  const auto found = clients_.find(client);
  return found != clients_.end() && found->second.who.empty();
}

void StoreService::say_goodbye() {
  for (const auto& [number, client] : clients_) {
    if (failure_ && client.who.empty()) reply_(number, failed());
    reply_(number, {Kind::kGoodbye, 0, 0, {}, {}});
  }
}

const char* StoreService::greet(std::uint64_t number, Client& client, const Message& message) {
  if (message.kind != Kind::kHello) return "sent no hello";
  if (!job_.empty() && message.key != job_) return "belongs to another job";
  client.who = message.value.empty() ? "unnamed" : message.value;
  if (come_.size() < size_) come_.insert(client.who);
  // First: a client that has its reply knows whether the job has failed.
  if (message.number == store_wire::kVersion && failure_) reply_(number, failed());
  reply_(number, {Kind::kValue, message.id, store_wire::kVersion, {}, job_id_});
  return nullptr;
}

const char* StoreService::serve(std::uint64_t number, Client& client, Message message) {
  switch (message.kind) {
    case Kind::kSet:
      set(number, std::move(message));
      return nullptr;
    case Kind::kTryGet:
    case Kind::kGet:
      look_up(number, message);
      return nullptr;
    case Kind::kForget:
      forget_waiters([number, id = message.id](const Waiter& waiter) {
        return waiter.client == number && waiter.id == id;
      });
      return nullptr;
    case Kind::kAdd: {
      const std::int64_t sum = tables_.add(message.key, message.number);
      reply_(number, {Kind::kValue, message.id, sum, {}, {}});
      return nullptr;
    }
    case Kind::kRetire:
      tables_.retire(message.key, message.number);
      return nullptr;
    case Kind::kJoin:
      join(number, client, std::move(message));
      return nullptr;
    case Kind::kLeave:
      leave(client);
      return nullptr;
    case Kind::kFail:
      fail(message.value);
      reply_(number, {Kind::kValue, message.id, 0, {}, *failure_});
      return nullptr;
    default:
      return "sent a message that only the server sends";
  }
}

void StoreService::join(std::uint64_t number, Client& client, Message message) {
  const Membership wanted{static_cast<int>(message.number), std::move(message.key),
                          leading_number(message.value), client.who};
  const auto answer = members_.judge(wanted);
  if (answer.verdict == Members::Verdict::kRefused)
    return reply_(number, {Kind::kNothing, message.id, 0, {}, answer.text});
  if (answer.verdict == Members::Verdict::kTakenTwice) {
    fail(answer.text);
  } else {
    members_.join(wanted);
    client.memberships.push_back(wanted);
  }
  reply_(number, {Kind::kValue, message.id, 0, {}, {}});
}

void StoreService::leave(Client& client) {
  if (client.memberships.empty()) return;
  const Membership& last = client.memberships.back();
  members_.leave(last.communicator, last.rank);
  client.memberships.pop_back();
}

void StoreService::look_up(std::uint64_t number, const Message& message) {
  const std::string* const found = tables_.find(message.key);
  if (found != nullptr) {
    reply_(number, {Kind::kValue, message.id, 0, {}, *found});
  } else if (message.kind == Kind::kTryGet) {
    reply_(number, {Kind::kNothing, message.id, 0, {}, {}});
  } else {
    waiters_[message.key].push_back({number, message.id});
  }
}

void StoreService::set(std::uint64_t number, Message message) {
  const std::string& value = tables_.set(message.key, std::move(message.value));
  reply_(number, {Kind::kValue, message.id, 0, {}, {}});
  const auto found = waiters_.find(message.key);
  if (found == waiters_.end()) return;
  const auto waiters = std::move(found->second);
  waiters_.erase(found);
  for (const Waiter& waiter : waiters)
    reply_(waiter.client, {Kind::kValue, waiter.id, 0, {}, value});
}

template <typename Is>
void StoreService::forget_waiters(const Is& is_one) {
  for (auto key = waiters_.begin(); key != waiters_.end();) {
    std::erase_if(key->second, is_one);
    key = key->second.empty() ? waiters_.erase(key) : std::next(key);
  }
}

void StoreService::fail(const std::string& text) {
  if (failure_) return;
  failure_ = text;
  had_met_ = members_.have_met();
  for (const auto& [number, client] : clients_) {
    if (!client.who.empty()) reply_(number, failed());
  }
}

Message StoreService::failed() const {
  return {Kind::kFailed, 0, had_met_ ? 1 : 0, job_id_, *failure_};
}

}  // namespace kolo::inline v0
