// Rendezvous of the ranks, and the job's first failure.
//
// A *store* is a small table of strings that all ranks of a job share. Transports publish addresses
// in it, after they have bound them, so there is no race for a free port. It also carries the first
// failure to all ranks.
//
//   LocalStore   ranks that are threads of one process
//   FileStore    ranks that share a file system
//   TcpStore     a server in one process (rank 0's, or the launcher's), and a connection from every
//                rank. The server detects a rank's death by its connection, over any transport of
//                the data, and tells the other ranks.
//
// Threading: all calls are safe from several threads. Waits have deadlines; their errors name the
// key and the missing ranks.
//
// A store may *hang*: rank 0 is stopped, the network is cut, or a stopped rank holds the file's
// lock. Then note(), ask() and failure() still do not wait. post_failure() and leave() wait a
// second at most, and post_failure() does not wait if silence() is not empty. All other calls wait
// as long as connecting was given (3 to 30 s). A TCP store that is silent for so long counts as
// lost, which fails the job.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "error.h"
#include "log.h"
#include "transport.h"

namespace kolo::inline v0 {

class PastJobs;

class Store {
 public:
  Store() = default;
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;
  virtual ~Store() = default;

  static constexpr std::size_t kLongestValue = 1 << 20;

  // std::invalid_argument, with the key, if the value is longer than kLongestValue.
  virtual void set(std::string_view key, std::string_view value) = 0;
  virtual std::optional<std::string> try_get(std::string_view key) = 0;

  // set() without waiting, for optional information: it is lost if the store hangs or ends. Later
  // calls on this store take effect after it.
  virtual void note(std::string_view key, std::string_view value) { set(key, value); }

  // try_get() without waiting. The answer arrives during later calls of failure(). If the store
  // ends before, it is empty.
  struct Answer {
    std::atomic<bool> has_come = false;
    std::optional<std::string> value;  // valid once has_come
  };
  virtual std::shared_ptr<const Answer> ask(std::string_view key);

  // Waits for the key. Error kDeadline after the deadline, kAborted if a failure is posted
  // meanwhile.
  virtual std::string get(std::string_view key, Deadline deadline) = 0;

  // Adds to a counter that starts at 0; returns the new value. It wraps around.
  virtual std::int64_t add(std::string_view key, std::int64_t delta) = 0;

  // One of `users` ranks has no more use for the keys that start with `prefix`. The last one's call
  // removes them. Does not wait; like note(), it is lost if the store hangs or ends.
  virtual void retire(std::string_view prefix, int users) = 0;

  // Registers `rank` as alive. A joined rank whose store ends without leave() counts as dead, if
  // the store can detect that. If two processes join as the same rank of one `communicator` (a
  // name; empty: none), the job fails, and the error names both. Once all `size` ranks of it have
  // joined (0: unknown), only the newcomer gets an error, and can use the store no more.
  virtual void join(int rank, std::string_view communicator, int size) = 0;
  void join(int rank) { join(rank, {}, 0); }
  virtual void leave() = 0;

  // The job's first failure, if any. Cheap, and does not block: call it in every long wait.
  virtual std::optional<std::string> failure() = 0;

  // Posts a failure. The first one wins and is returned. If the store hangs, returns `text`.
  virtual std::string post_failure(std::string_view text) = 0;

  // Identifies the job that this store serves. A later job at the same address or file has another
  // id. Empty: unknown.
  virtual std::string job_id() const { return ""; }

  // Readable when failure() may have news; -1: only polling failure() tells.
  virtual int descriptor() const { return -1; }

  // For messages, if note() or ask() has had no answer for some time: "rank 0, which serves the
  // store at 10.0.0.1:29500, has not answered for 2.0 s"; else empty.
  virtual std::string silence() { return ""; }

  // While silence() is not empty and a rank serves the store: the failure that this suggests, "rank
  // 0 is gone, which serves the store at 10.0.0.1:29500: ..."; else empty.
  virtual std::string suspicion() { return ""; }

  // For messages: "the store at 10.0.0.1:29500", "the store in the file /tmp/job".
  virtual std::string describe() const { return "the store"; }
};

// Waits until all answers have come. False if the deadline passes before, or the job fails.
bool wait_for_answers(Store& store, std::span<const std::shared_ptr<const Store::Answer>> answers,
                      Deadline deadline);

// The same store with a prefix for every key, to separate two communicators of one job.
std::shared_ptr<Store> prefixed(std::shared_ptr<Store> store, std::string prefix);

// The same store for several users in one process. Only the first join() and the last leave()
// count: the process is one rank of the job, with any number of communicators.
std::shared_ptr<Store> joined_once(std::shared_ptr<Store> store);

std::shared_ptr<Store> make_local_store();

// A store in a file that every rank can open; made if absent. The last rank that leaves removes it,
// also if it existed empty before (mktemp). Error kDeadline if a stopped or hanging process holds
// its lock.
// `past`: a job that this process knows to have failed, or that has met and failed, is not joined
// if it lingers there. Another file takes its place.
std::shared_ptr<Store> open_file_store(const std::string& path, int size, Deadline deadline,
                                       const PastJobs* past = nullptr);

// Server of a TCP store. Binds in the constructor (port 0: the kernel chooses), and serves from its
// own thread until destroyed.
class TcpStoreServer {
 public:
  // `host`: the address to bind; empty: all addresses, IPv4 and IPv6. Error kUnavailable if the
  // port is in use. `size`: number of ranks of the job; 0: unknown. `job`: clients of other jobs
  // are refused; empty: all clients are accepted.
  TcpStoreServer(const std::string& host, std::uint16_t port, int size = 0,
                 const std::string& job = {});
  // Waits 5 s at most until the joined ranks have left. After a failure it waits only until they
  // have it, and a second for ranks of `size` that have not come yet, to tell them too.
  ~TcpStoreServer();
  TcpStoreServer(const TcpStoreServer&) = delete;
  TcpStoreServer& operator=(const TcpStoreServer&) = delete;

  std::uint16_t port() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Connects, with retries until the deadline. Error kDeadline names host and port. `server`: the
// rank that serves the store, if a rank does; messages name it if the store hangs or ends. `past`:
// as for open_file_store(); waits until another job is served there.
std::shared_ptr<Store> connect_tcp_store(const std::string& host, std::uint16_t port,
                                         Deadline deadline, int server = kNoPeer,
                                         const PastJobs* past = nullptr);

// The places where a store may be served, in the order in which a client tries them.
struct StorePlaces {
  struct Place {
    std::string host;
    std::uint16_t port = 0;
  };
  std::vector<Place> places;
  std::string job = {};  // as the server's; empty: not compared
};
std::shared_ptr<Store> connect_tcp_store(const StorePlaces& at, Deadline deadline,
                                         int server = kNoPeer, const PastJobs* past = nullptr);

// Rank and size of this process, from its launcher.
struct LaunchEnvironment {
  int rank = 0;
  int size = 1;
  int local_rank = 0;
  int local_size = 1;  // 0: unknown; then it is determined through the store
};

// Reads RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE. If none is set: one process alone. If the
// last two are not set: one host. LOCAL_WORLD_SIZE alone may be missing. Other incomplete or
// unreadable environments are std::invalid_argument that names the variable.
LaunchEnvironment launch_environment();

// The job's store by the environment: KOLO_STORE (tcp://host:port or file:PATH) if set; else
// MASTER_ADDR and MASTER_PORT, where rank 0 serves; else, for one rank alone, a local one. While a
// store is in use, further calls return the same one, from any thread. A call waits for another
// thread that is connecting. The server serves until the process ends, so that ranks may come again
// in any order, or until rank 0 releases the store of a failed job.
std::shared_ptr<Store> store_from_environment(const LaunchEnvironment& who, Deadline deadline);

// Writes unknown KOLO_ variables to the log (settings.h). Each is reported once per job,
// by the first rank that has it, since most ranks have the same. It is not an error, unlike a value
// that cannot be read: the name may belong to a later version, or to a transport from outside.
void tell_unknown_settings(Store& store, const Log& log = {});

}  // namespace kolo::inline v0
