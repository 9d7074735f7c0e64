// Header of a message between a key server and its client.
//
//   request   a header; of a push also the gradient, in fragments of kFragment elements
//   answer    a header, then the values as one message
//   waiting   a header alone: the server is alive, and a pull waits for other workers
//   finish    a header alone
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "collectives/key_server.h"

namespace kolo::inline v0::key_server {

enum class MessageKind : std::uint32_t { kPush = 1, kPull, kPushPull, kFinish, kAnswer, kWaiting };

inline constexpr std::uint32_t kMagic = 0x6b65797f;
inline constexpr std::size_t kFragment = 128 * 1024;

// The server and its clients measure silence themselves: no message times out.
inline const CallOptions kWithoutTimeout{.timeout = std::chrono::milliseconds::max()};

// A deadline that is noticed this late was missed because this rank was stopped.
inline constexpr std::chrono::milliseconds kAway{500};

struct Message {
  std::uint32_t magic = kMagic;
  MessageKind kind = MessageKind::kPush;
  std::int64_t iteration = 0;  // of an answer: the first iteration that the server has not ended
  std::uint64_t key = 0;
  std::uint64_t first = 0;  // the key's range, so that different plans are noticed
  std::uint64_t count = 0;
  double samples = 0;

  std::span<std::byte> bytes() { return std::as_writable_bytes(std::span(this, 1)); }
};
static_assert(sizeof(Message) == 48);

constexpr bool has_gradient(MessageKind kind) {
  return kind == MessageKind::kPush || kind == MessageKind::kPushPull;
}
constexpr bool wants_answer(MessageKind kind) {
  return kind == MessageKind::kPull || kind == MessageKind::kPushPull;
}

// A message about key number `key` of the plan.
Message message_of(MessageKind kind, const KeyPlan& plan, std::size_t key);

// What is wrong with a message that `server` gets from a worker, or sends to one; empty if nothing.
std::string fault_of_request(const Message& message, const KeyPlan& plan, int server);
std::string fault_of_answer(const Message& message, const KeyPlan& plan, int server);

// Throws std::invalid_argument unless the plan fits a communicator of `size` ranks, with a worker.
void check_plan(const KeyPlan& plan, int size);
bool is_server(const KeyPlan& plan, int rank);

}  // namespace kolo::inline v0::key_server
