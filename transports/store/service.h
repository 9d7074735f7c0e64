// What a TCP store's server makes of what its clients say: tables in memory, without a socket, a
// clock or a thread.
//
// A *client* is a number that the caller gives. Until it has said hello it is a *stranger*: of it a
// few kilobytes are kept, and anything but a hello ends it. A client that joined as a rank and ends
// without kLeave is that rank's death: it becomes the job's failure, and everybody is told. So does
// a rank that two processes are at once.
//
// Threading: calls come from one thread. What is said to clients leaves through the `reply` of the
// constructor, while a call lasts; it calls nothing back.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "transports/store/wire.h"

namespace kolo {

class StoreService {
 public:
  using Reply = std::function<void(std::uint64_t client, const store_wire::Message&)>;
  // `size`: the ranks of the job, where that is known.
  explicit StoreService(Reply reply, int size = 0)
      : reply_(std::move(reply)), size_(static_cast<std::size_t>(std::max(size, 0))) {}

  void add(std::uint64_t client) { clients_.try_emplace(client); }

  // The next bytes that a client has said. Why it is to be hung up on and removed: "did not say
  // hello"; null where all is well. A client that is not there is no harm.
  const char* hear(std::uint64_t client, std::string_view bytes);

  // The client has ended: "closed without a goodbye".
  void remove(std::uint64_t client, const char* how);

  bool is_unknown(std::uint64_t client) const;

  // Ranks have joined and not left. After a failure none of them needs the store any more.
  bool is_needed() const;

  // The job has failed, and processes of it have not come yet to hear of it.
  bool is_awaited() const { return failure_ && come_.size() < size_; }

  // The server ends in good order. Who has not said hello, and may be just about to, hears of the
  // job's failure, too.
  void say_goodbye();

 private:
  struct Membership {
    int rank;
    std::string communicator;
  };
  struct Client {
    std::string who;  // empty: a stranger
    std::vector<Membership> memberships;
    std::string in;
  };
  struct Waiter {
    std::uint64_t client;
    std::uint64_t id;
  };

  const char* greet(std::uint64_t number, Client& client, const store_wire::Message& message);
  const char* serve(std::uint64_t number, Client& client, store_wire::Message message);
  void join(Client& client, store_wire::Message message);
  void look_up(std::uint64_t number, const store_wire::Message& message);
  void set(std::uint64_t number, store_wire::Message message);
  template <typename Is>
  void forget_waiters(const Is& is_one);
  void fail(const std::string& text);

  const Reply reply_;
  const std::size_t size_;
  std::set<std::string> come_;  // the names of `size_` clients, at most
  std::map<std::uint64_t, Client> clients_;
  std::unordered_map<std::string, std::string> values_;
  std::unordered_map<std::string, std::int64_t> counters_;
  std::unordered_map<std::string, std::vector<Waiter>> waiters_;  // by key; none is empty
  std::optional<std::string> failure_;
};

}  // namespace kolo
