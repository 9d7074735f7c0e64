// Bootstrap by the host program's own means: a key-value store of its own, or an all-gather.
//
// For programs that have a service by which their processes meet already (torch.distributed's
// store, etcd, MPI). All others use rendezvous.h.
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
// Store::kLongestValue. The functions may be called from several threads at once. The rules hold
// between all processes that share the store:
// - a value that `set` has stored is found by every later `get`;
// - `add` is atomic. A counter starts at 0, and its keys are not those of `set`.
// An exception of a function fails the call that needs it.
struct KeyValueFunctions {
  std::function<void(std::string_view key, std::string_view value)> set;
  // Nothing if there is no value. Does not wait for the key.
  std::function<std::optional<std::string>(std::string_view key)> get;
  // Returns the new value.
  std::function<std::int64_t(std::string_view key, std::int64_t delta)> add;
  // Removes a value or a counter. Empty: nothing is ever removed.
  std::function<void(std::string_view key)> remove = {};
  std::string name = "the caller's store";  // for messages
};

// The store of a job over these functions. It needs no thread and no socket. Waits poll with `get`,
// at most every 10 ms, and failure() asks ten times a second. The store cannot detect the death of
// a rank; the connections of the transport can. std::invalid_argument: `set`, `get` or `add` is
// missing.
std::shared_ptr<Store> make_store(KeyValueFunctions functions);

// Every rank gives `mine`, equally long on every rank. `all` gets those of all, in the order of
// ranks. An exception fails the bootstrap on this rank.
using AllGather = std::function<void(std::span<const std::byte> mine, std::span<std::byte> all)>;

// The store of a job whose processes can exchange data already. Calls `all_gather` once, on every
// rank. Rank 0 serves a TCP store, in a thread, at a port that the kernel chooses; it ends with
// rank 0's store. Error kDeadline: rank 0 cannot be reached.
std::shared_ptr<Store> store_by_all_gather(int rank, int size, const AllGather& all_gather,
                                           Deadline deadline);

}  // namespace kolo::inline v0
