#include "collectives/key_server/message.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "transports/base/check.h"

namespace kolo::inline v0::key_server {
namespace {

std::string fault_of_key(const Message& message, const KeyPlan& plan, int server) {
  if (message.key >= plan.keys.size()) {
    return fmt::format("key {}, but there are {} keys here; do all ranks have the same plan?",
                       message.key, plan.keys.size());
  }
  const Key& key = plan.keys[message.key];
  if (key.server != server) {
    return fmt::format(
        "key {}, which is of server rank {} and not of {}; do all ranks have the "
        "same plan?",
        message.key, key.server, server);
  }
  if (message.first != key.first || message.count != key.count) {
    return fmt::format(
        "key {} as {} elements from {}, but here it has {} from {}; do all ranks "
        "have the same plan?",
        message.key, message.count, message.first, key.count, key.first);
  }
  return "";
}

}  // namespace

Message message_of(MessageKind kind, const KeyPlan& plan, std::size_t key) {
  Message message;
  message.kind = kind;
  message.key = key;
  message.first = plan.keys[key].first;
  message.count = plan.keys[key].count;
  return message;
}

std::string fault_of_request(const Message& message, const KeyPlan& plan, int server) {
  if (message.magic != kMagic) return "a message that is none of a key client";
  if (message.kind == MessageKind::kFinish) return "";
  if (!has_gradient(message.kind) && !wants_answer(message.kind)) {
    return fmt::format("a request of the unknown kind {}", static_cast<unsigned>(message.kind));
  }
  if (!std::isfinite(message.samples) || message.samples < 0)
    return fmt::format("a gradient of {} samples", message.samples);
  return fault_of_key(message, plan, server);
}

std::string fault_of_answer(const Message& message, const KeyPlan& plan, int server) {
  if (message.magic != kMagic) return "a message that is none of a key server";
  if (message.kind == MessageKind::kWaiting) return "";
  if (message.kind != MessageKind::kAnswer)
    return fmt::format("an answer of the unknown kind {}", static_cast<unsigned>(message.kind));
  return fault_of_key(message, plan, server);
}

void check_plan(const KeyPlan& plan, int size) {
  check(!plan.servers.empty(), "a key plan without servers");
  check(static_cast<int>(plan.servers.size()) < size,
        fmt::format("a key plan of {} servers and no worker: there are {} ranks",
                    plan.servers.size(), size));
  for (const int server : plan.servers) {
    check(server >= 0 && server < size,
          fmt::format("a key plan with server rank {}: there are ranks 0 to {}", server, size - 1));
  }
  for (const Key& key : plan.keys) {
    check(key.count > 0 && key.first <= plan.elements && key.count <= plan.elements - key.first &&
              is_server(plan, key.server),
          fmt::format("a key plan with a key of {} elements from {} at server rank {}: the arena "
                      "has {} elements",
                      key.count, key.first, key.server, plan.elements));
  }
}

bool is_server(const KeyPlan& plan, int rank) {
  return std::ranges::find(plan.servers, rank) != plan.servers.end();
}

}  // namespace kolo::inline v0::key_server
