// Bootstrap over a service of the program: its key-value store, or its all-gather.
//
// For programs whose processes can already exchange data, by torch.distributed's store, etcd or
// MPI. Other programs use rendezvous.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "rendezvous.h"

namespace kolo::inline v0 {

// A key-value store of the caller. Keys are printable text; values are any bytes, up to
// Store::kLongestValue. Several threads may call the functions at once. Two rules must hold across
// all processes that share the store:
// - a value that `set` has stored is found by every later `get`;
// - `add` is atomic. A counter starts at 0, and its keys are not those of `set`.
// Each job needs keys of its own (a prefix): a job that has failed leaves its keys in the store.
// If a function throws, the call of kolo that needs it fails.
struct KeyValueFunctions {
  std::function<void(std::string_view key, std::string_view value)> set;
  // Returns nullopt if the key has no value. Does not wait until the key is set.
  std::function<std::optional<std::string>(std::string_view key)> get;
  // Returns the new value.
  std::function<std::int64_t(std::string_view key, std::int64_t delta)> add;
  // Removes a value or a counter. An empty function: kolo removes no keys.
  std::function<void(std::string_view key)> remove = {};
  std::string name = "the caller's store";  // for messages
};

// Makes the store of a job over these functions. It needs no thread and no socket. A wait calls
// `get` again after 0.1 to 10 ms; failure() calls it ten times a second. The store cannot detect a
// dead rank, but the transport's connections can. std::invalid_argument: `set`, `get` or `add` is
// missing.
std::shared_ptr<Store> make_store(KeyValueFunctions functions);

// Each rank passes `mine`, which has the same length on every rank. `all` receives the bytes of all
// ranks, in the order of ranks. An exception fails the bootstrap on this rank.
using AllGather = std::function<void(std::span<const std::byte> mine, std::span<std::byte> all)>;

// Makes the store of a job whose processes can already exchange data. Calls `all_gather` once, on
// every rank. On rank 0 a thread serves a TCP store at a port that the kernel chooses, until rank
// 0's store is destroyed. Error kDeadline: rank 0 cannot be reached.
std::shared_ptr<Store> store_by_all_gather(int rank, int size, const AllGather& all_gather,
                                           Deadline deadline);

}  // namespace kolo::inline v0
