// Protocol logic of a TCP store's server: tables in memory, without sockets, clocks or threads.
//
// A *client* is a number chosen by the caller. It is *unknown* until its hello. An unknown client
// may send at most a few kilobytes, and any other message ends it.
//
// A client that joined as a rank and ends without kLeave means that the rank died. The death
// becomes the job's failure, and all clients are told. members.h says which process may join.
//
// Threading: calls come from one thread. Messages to clients go through the constructor's `reply`,
// which is called inside the other calls and must not call back.
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

#include "transports/store/members.h"
#include "transports/store/tables.h"
#include "transports/store/wire.h"

namespace kolo::inline v0 {

class StoreService {
 public:
  using Reply = std::function<void(std::uint64_t client, const store_wire::Message&)>;
  // `size`: number of ranks of the job, 0 if unknown. `job`: clients that name another job are
  // refused; empty: all are accepted. `job_id`: see Store.
  explicit StoreService(Reply reply, int size = 0, std::string job = {}, std::string job_id = {})
      : reply_(std::move(reply)),
        size_(static_cast<std::size_t>(std::max(size, 0))),
        job_(std::move(job)),
        job_id_(std::move(job_id)) {}

  void add(std::uint64_t client) { clients_.try_emplace(client); }

  // Handles the next bytes from a client. Returns null, or the reason to close and remove the
  // client: "sent no hello". Ignores clients that do not exist.
  const char* hear(std::uint64_t client, std::string_view bytes);

  // The client's connection has ended. `how`, for messages: "closed without a goodbye".
  void remove(std::uint64_t client, const char* how);

  bool is_unknown(std::uint64_t client) const;

  // True while joined ranks have not left. After a failure no rank needs the store any more.
  bool is_needed() const { return !failure_ && !members_.is_empty(); }

  // True if the job has failed and some of its processes have not connected yet to learn of it.
  bool is_awaited() const { return failure_ && come_.size() < size_; }

  // Announces the server's regular end to all clients. Also reports a failure to clients without a
  // hello, as they may be about to send it.
  void say_goodbye();

 private:
  struct Client {
    std::string who;  // "host, pid"; empty before the hello
    std::vector<Membership> memberships;
    std::string in;
  };
  struct Waiter {
    std::uint64_t client;
    std::uint64_t id;
  };

  const char* greet(std::uint64_t number, Client& client, const store_wire::Message& message);
  const char* serve(std::uint64_t number, Client& client, store_wire::Message message);
  void join(std::uint64_t number, Client& client, store_wire::Message message);
  void leave(Client& client);
  void look_up(std::uint64_t number, const store_wire::Message& message);
  void set(std::uint64_t number, store_wire::Message message);
  template <typename Is>
  void forget_waiters(const Is& is_one);
  void fail(const std::string& text);
  store_wire::Message failed() const;

  const Reply reply_;
  const std::size_t size_;
  const std::string job_;
  const std::string job_id_;
  std::set<std::string> come_;  // names of clients that said hello, at most `size_`
  std::map<std::uint64_t, Client> clients_;
  Members members_;
  StoreTables tables_;
  std::unordered_map<std::string, std::vector<Waiter>> waiters_;  // by key; no list is empty
  std::optional<std::string> failure_;
  bool had_met_ = false;  // before the failure
};

}  // namespace kolo::inline v0
