// How ranks find each other, and how they learn that one of them is gone.
//
// A *store* is a small table of strings that all ranks of a job see. Transports publish addresses
// in it (bound first, published after: no race for a free port), and it carries the one thing that
// must reach everybody: the first failure.
//
//   LocalStore   ranks that are threads of one process
//   FileStore    ranks that see one file system
//   TcpStore     a server in one process (rank 0's, or the launcher's), a connection from every
//                rank. The server sees a rank die by its connection, whatever transport the data
//                took, and tells the others.
//
// Threading: all calls are safe from several threads. Waits have deadlines; what they throw names
// the key and says who has not come.
//
// Where the store *hangs* (rank 0 is stopped, the network is cut, a rank that is stopped holds the
// file's lock), note(), ask() and failure() still wait for nobody, post_failure() and leave() a
// second at most (post_failure() not at all where silence() has something to say), and all others
// as long as connecting was given (3 to 30 s): a TCP store counts as gone then, which is the job's
// failure.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "error.h"
#include "transport.h"

namespace kolo {

class Store {
 public:
  Store() = default;
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;
  virtual ~Store() = default;

  static constexpr std::size_t kLongestValue = 1 << 20;

  // std::invalid_argument, with the key, where the value is longer.
  virtual void set(std::string_view key, std::string_view value) = 0;
  virtual std::optional<std::string> try_get(std::string_view key) = 0;

  // set() without waiting for anybody, for what is good to know and no more: it is lost where the
  // store hangs or goes. What is set or asked here later is set or answered after it.
  virtual void note(std::string_view key, std::string_view value) { set(key, value); }

  // try_get() without waiting. The answer comes while somebody calls failure(), now and then; where
  // the store ends before, it is nothing.
  struct Answer {
    std::atomic<bool> has_come = false;
    std::optional<std::string> value;  // once it has
  };
  virtual std::shared_ptr<const Answer> ask(std::string_view key);

  // Waits for the key. Error kDeadline after that, kAborted when a failure is posted meanwhile.
  virtual std::string get(std::string_view key, Deadline deadline) = 0;

  // Adds to a counter that starts at 0; returns the new value. It wraps around.
  virtual std::int64_t add(std::string_view key, std::int64_t delta) = 0;

  // Says that `rank` of this job is alive on this store from now on. A joined rank whose store goes
  // away without leave() counts as dead, where the store can see that. Two processes that are the
  // same rank of one `communicator` (a name; empty: of none) at once are a failure of the job's,
  // which names both.
  virtual void join(int rank, std::string_view communicator) = 0;
  void join(int rank) { join(rank, {}); }
  virtual void leave() = 0;

  // The job's first failure, if any. Cheap and without blocking: it is asked in every long wait.
  virtual std::optional<std::string> failure() = 0;

  // Posts a failure. The first one wins; returns the one that won, as far as the store says: where
  // it hangs, `text`.
  virtual std::string post_failure(std::string_view text) = 0;

  // Readable when failure() may have news; -1 where only asking tells.
  virtual int descriptor() const { return -1; }

  // For messages, where what was noted or asked has had no answer for some time: "rank 0, which
  // serves the store at 10.0.0.1:29500, has not answered for 2.0 s"; else empty.
  virtual std::string silence() { return ""; }

  // For messages: "the store at 10.0.0.1:29500", "the store in the file /tmp/job".
  virtual std::string describe() const { return "the store"; }
};

// Waits until all have come. False where the deadline passes before, or the job fails.
bool wait_for_answers(Store& store, std::span<const std::shared_ptr<const Store::Answer>> answers,
                      Deadline deadline);

// The same store, with every key prefixed: how two communicators of one job keep apart.
std::shared_ptr<Store> prefixed(std::shared_ptr<Store> store, std::string prefix);

// The same store for several users in one process, of which the first join() and the last leave()
// count: this process is one rank of the job, however many communicators it has.
std::shared_ptr<Store> joined_once(std::shared_ptr<Store> store);

std::shared_ptr<Store> make_local_store();

// A store in a file that every rank can open; made if absent. The last rank that leaves removes it,
// an empty file that was there before (mktemp's), too. Error kDeadline where somebody who is
// stopped, or hangs, has its lock.
std::shared_ptr<Store> open_file_store(const std::string& path, int size, Deadline deadline);

// The server of a TCP store: binds at once (port 0: the kernel chooses), serves from a thread of
// its own until destroyed.
class TcpStoreServer {
 public:
  // `host`: the address to bind, empty for all, IPv4 and IPv6. Error kUnavailable where the port is
  // in use. `size`: the ranks of the job, where that is known.
  TcpStoreServer(const std::string& host, std::uint16_t port, int size = 0);
  // Waits for those who have joined to leave, 5 s at most; after a failure only until they are told
  // of it, and a second for those of `size` that have not come yet, to tell them.
  ~TcpStoreServer();
  TcpStoreServer(const TcpStoreServer&) = delete;
  TcpStoreServer& operator=(const TcpStoreServer&) = delete;

  std::uint16_t port() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Connects, again and again until the deadline. Error kDeadline names host and port. `server`: the
// rank that serves, where it is one; it is named where the store hangs or ends.
std::shared_ptr<Store> connect_tcp_store(const std::string& host, std::uint16_t port,
                                         Deadline deadline, int server = kNoPeer);

// Who this process is, as its launcher says.
struct LaunchEnvironment {
  int rank = 0;
  int size = 1;
  int local_rank = 0;
  int local_size = 1;  // 0: unknown; then it is found through the store
};

// Reads RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE; one process alone where none is set, one
// host where the last two are not; LOCAL_WORLD_SIZE alone may be missing. A half-set or unreadable
// environment is std::invalid_argument that names the variable.
LaunchEnvironment launch_environment();

// The job's store as the environment says: KOLO_STORE (tcp://host:port or file:PATH) if set; else
// MASTER_ADDR and MASTER_PORT, where rank 0 serves; else, for one rank alone, a local one. While a
// store is in use, who asks again gets the same one, from any thread; one that has not reached it
// yet is waited for. The server serves until the process ends, so that ranks may come again in any
// order, or until rank 0 lets go of a store whose job has failed.
std::shared_ptr<Store> store_from_environment(const LaunchEnvironment& who, Deadline deadline);

// Says on standard error which variables of this process look like settings and are none
// (settings.h), each once in a job: the first rank that has it does, as most have the same ones. A
// value that cannot be read is an error; a name that nobody knows may be that of a later version,
// or of a transport from outside, and must not end their jobs.
void tell_unknown_settings(Store& store);

}  // namespace kolo
