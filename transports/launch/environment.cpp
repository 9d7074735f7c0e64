// Launch environment (RANK, WORLD_SIZE, ...) and the job's store.
#include <fmt/format.h>
#include <unistd.h>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>

#include "transports/error.h"
#include "transports/launch/announcement.h"
#include "transports/launch/meeting_point.h"
#include "transports/posix/host/identity.h"
#include "transports/posix/socket.h"
#include "transports/rendezvous.h"
#include "transports/settings.h"
#include "transports/store/past_jobs.h"
#include "transports/store/url.h"

namespace kolo::inline v0 {

namespace {

// Timeout of the handshake with a store on this host, which answers at once.
constexpr std::chrono::seconds kToBeAnswered{1};

void need_both(bool has_first, bool has_second, const char* first, const char* second) {
  if (has_first == has_second) return;
  throw std::invalid_argument(fmt::format("{} is set but {} is not: set both, or neither",
                                          has_first ? first : second, has_first ? second : first));
}

// The servers that this process started as rank 0, by address and size. They live as long as the
// process. Otherwise ranks that make another communicator could connect to a server that is ending,
// because rank 0 releases its last store a moment later.
class KeptServers {
 public:
  ~KeptServers() {
    if (!is_own()) inherited_ = std::make_unique<Servers>(std::move(servers_)).release();
  }

  std::shared_ptr<TcpStoreServer> find(const std::string& place, int size) {
    const std::lock_guard lock(mutex_);
    const auto found = servers_.find(place);
    if (!is_own() || found == servers_.end()) return nullptr;
    if (found->second.size == size) return found->second.server;
    servers_.erase(found);  // of a finished job; an unfinished one's store also holds the server
    return nullptr;
  }
  void keep(const std::string& place, int size, const std::shared_ptr<TcpStoreServer>& server) {
    const std::lock_guard lock(mutex_);
    if (is_own()) servers_[place] = {size, server};
  }
  void drop(const std::string& place) {
    const std::lock_guard lock(mutex_);
    if (is_own()) servers_.erase(place);
  }

 private:
  struct KeptUntilExit {
    int size;
    std::shared_ptr<TcpStoreServer> server;
  };
  using Servers = std::map<std::string, KeptUntilExit>;

  // A forked process's copies of the servers, whose threads it lacks. They are never destroyed.
  static inline Servers* inherited_ = nullptr;

  bool is_own() const { return ::getpid() == process_; }

  const pid_t process_ = ::getpid();
  std::mutex mutex_;
  Servers servers_;
};

// Stores hold it as well, since they may outlive static objects.
std::shared_ptr<KeptServers> kept_servers() {
  static const auto kept = std::make_shared<KeptServers>();
  return kept;
}

// Stores hold it as well, since they may outlive static objects.
std::shared_ptr<PastJobs> past_jobs() {
  static const auto past = std::make_shared<PastJobs>();
  return past;
}

// The same store. When it is released, its job becomes a past one if it has failed.
std::shared_ptr<Store> remembered(std::shared_ptr<Store> store) {
  Store* const plain = store.get();
  return {plain, [store = std::move(store), past = past_jobs()](Store*) mutable {
            if (store->failure()) past->add(store->job_id());
            store.reset();
          }};
}

// Rank 0's store. If the job has failed, its server is destroyed after the client.
std::shared_ptr<Store> with_server(std::shared_ptr<Store> client,
                                   std::shared_ptr<TcpStoreServer> server, std::string place) {
  Store* const store = client.get();
  return {store, [client = std::move(client), server = std::move(server), place = std::move(place),
                  kept = kept_servers()](Store*) mutable {
            const bool has_failed = client->failure().has_value();
            client.reset();
            server.reset();
            if (has_failed) kept->drop(place);
            kept.reset();
          }};
}

// A job on one host listens on the loopback address only. A name of this host may be one as well,
// and is another address for the ranks of other hosts: Debian lists "127.0.1.1 host1" in
// /etc/hosts.
std::string host_to_bind(const std::string& master_host) {
  return posix::is_loopback_only(master_host) ? master_host : "";
}

// If a kolo store already listens on the port, there is a rank 0 already. Only this process gets an
// error: the other one may belong to another job.
std::shared_ptr<TcpStoreServer> serve_store(const StorePlaces& at, int size) {
  for (std::size_t i = 0; i + 1 < at.places.size(); ++i) {
    try {
      const auto& [host, port] = at.places[i];
      return std::make_shared<TcpStoreServer>(host_to_bind(host), port, size, at.job);
    } catch (const Error&) {
      // Another program has the port; the next one is as good.
    }
  }
  const auto& [host, port] = at.places.back();
  try {
    return std::make_shared<TcpStoreServer>(host_to_bind(host), port, size, at.job);
  } catch (const Error& error) {
    try {
      connect_tcp_store({{at.places.back()}, at.job}, Clock::now() + kToBeAnswered);
    } catch (const Error&) {
      throw error;
    }
    throw Error(ErrorCode::kUnavailable, kNoPeer,
                fmt::format("another process already serves a kolo store at {}: either two "
                            "processes have RANK=0 (give each its own RANK), or another job "
                            "uses the port (choose another MASTER_PORT)",
                            posix::host_and_port(host, port)));
  }
}

// Connects rank 0 to its own server. If MASTER_ADDR is wrong, the error says so.
std::shared_ptr<Store> connect_to_own(const StorePlaces& at, std::uint16_t port,
                                      Deadline deadline) {
  const std::string& host = at.places.front().host;
  if (!at.job.empty() && host_to_bind(host).empty())
    return connect_tcp_store({{{"127.0.0.1", port}, {"::1", port}}, at.job}, deadline, 0);
  if (!at.job.empty()) return connect_tcp_store({{{host, port}}, at.job}, deadline, 0);
  try {
    return connect_tcp_store(host, port, deadline, 0);
  } catch (const Error& error) {
    std::string why;
    if (error.code() != ErrorCode::kDeadline) throw;
    const Deadline soon = Clock::now() + std::chrono::milliseconds(200);
    const bool is_known = !posix::resolve(host, port, why, soon).empty();
    throw Error(
        ErrorCode::kDeadline, 0,
        fmt::format("rank 0 serves the store of the job, but cannot reach it at {}{}: correct "
                    "MASTER_ADDR, to a name or an address of this host, {}, by which all ranks "
                    "reach it",
                    posix::host_and_port(host, port), is_known ? "" : " (" + why + ")",
                    posix::host_name()));
  }
}

std::shared_ptr<Store> store_from_url(const std::string& text, int size, Deadline deadline) {
  const auto url = parse_store_url(text);
  if (!url) {
    const bool is_tcp = text.starts_with("tcp://");
    throw std::invalid_argument(fmt::format("KOLO_STORE='{}' is {}", text,
                                            is_tcp
                                                ? "not tcp://HOST:PORT with a port from 1 to 65535"
                                                : "neither tcp://HOST:PORT nor file:PATH"));
  }
  if (url->path.empty()) return connect_tcp_store(url->host, url->port, deadline);
  return open_file_store(url->path, size, deadline, past_jobs().get());
}

std::string name_of(const StorePlaces& at) {
  return posix::host_and_port(at.places.front().host, at.places.front().port);
}

// The store of rank 0. Its server is kept for this process's next store, unless its job has failed.
std::shared_ptr<Store> serve_and_connect(const StorePlaces& at, int size, Deadline deadline) {
  const std::string place = name_of(at);
  auto server = kept_servers()->find(place, size);
  auto client = server ? connect_to_own(at, server->port(), deadline) : nullptr;
  if (server && client->failure()) {  // since this rank's last store was released
    client.reset();
    server.reset();
    kept_servers()->drop(place);
  }
  if (!server) server = serve_store(at, size);
  if (!client) client = connect_to_own(at, server->port(), deadline);
  kept_servers()->keep(place, size, server);
  return with_server(std::move(client), std::move(server), place);
}

// The store of a job in which every rank knows where rank 0 serves it.
std::shared_ptr<Store> store_at(const StorePlaces& at, const LaunchEnvironment& who,
                                Deadline deadline) {
  if (who.rank == 0) return serve_and_connect(at, who.size, deadline);
  return connect_tcp_store(at, deadline, 0, past_jobs().get());
}

// Serves a store at a port that the kernel chooses, and announces its places.
StorePlaces serve_and_announce(const launch::Announce& announce, const LaunchEnvironment& who,
                               Deadline deadline) {
  const bool is_one_host = read_settings().local_size == who.size;
  const std::string job = launch::random_name();
  auto server = is_one_host ? serve_store({{{"127.0.0.1", 0}, {"::1", 0}}, job}, who.size)
                            : serve_store({{{"", 0}}, job}, who.size);
  StorePlaces at = launch::places_of_this_host(server->port(), is_one_host);
  at.job = job;
  announce(launch::to_text(at), deadline);
  kept_servers()->keep(name_of(at), who.size, server);
  return at;
}

// The places that rank 0 announces through the launcher. They are announced once: a later store of
// this process is served at the same places.
StorePlaces announced_places(const launch::Announce& announce, const LaunchEnvironment& who,
                             Deadline deadline) {
  static std::mutex mutex;
  static std::map<int, StorePlaces> known;  // by rank
  const std::lock_guard lock(mutex);
  const auto found = known.find(who.rank);
  if (found != known.end()) return found->second;
  StorePlaces at = who.rank == 0 ? serve_and_announce(announce, who, deadline)
                                 : launch::parse_places(announce({}, deadline));
  known[who.rank] = at;
  return at;
}

std::shared_ptr<Store> find_store(const LaunchEnvironment& who, Deadline deadline) {
  const Settings settings = read_settings();
  if (!settings.store.empty()) return store_from_url(settings.store, who.size, deadline);
  need_both(!settings.master_host.empty(), settings.master_port != 0, "MASTER_ADDR", "MASTER_PORT");
  const bool has_place = settings.master_port != 0;
  if (has_place && settings.launcher.kind != Launcher::Kind::kTorchrun)
    return store_at({{{settings.master_host, settings.master_port}}}, who, deadline);
  if (who.size == 1) return make_local_store();
  if (const auto at = launch::meeting_point(settings)) return store_at(*at, who, deadline);
  if (const auto announce = launch::announcement(settings))
    return store_at(announced_places(announce, who, deadline), who, deadline);
  throw std::invalid_argument(
      fmt::format("{}={}, but neither KOLO_STORE nor MASTER_ADDR and MASTER_PORT says where the "
                  "ranks meet: start them with kolo-run, mpirun, srun or torchrun, or set these",
                  settings.size_variable, who.size));
}

}  // namespace

LaunchEnvironment launch_environment() {
  const Settings settings = read_settings();
  need_both(settings.rank.has_value(), settings.size.has_value(), "RANK", "WORLD_SIZE");
  if (settings.local_size && !settings.local_rank) {
    throw std::invalid_argument(
        "LOCAL_WORLD_SIZE is set but LOCAL_RANK is not: set both, or LOCAL_RANK alone, or neither");
  }
  LaunchEnvironment who;
  if (!settings.rank) return who;
  who.rank = *settings.rank;
  who.size = *settings.size;
  // A launcher without LOCAL_RANK most likely uses one host. With LOCAL_RANK alone, the local size
  // is determined through the store.
  const bool is_pod = settings.launcher.kind == Launcher::Kind::kKubernetes;
  who.local_rank = settings.local_rank.value_or(is_pod ? 0 : who.rank);
  who.local_size = settings.local_size.value_or(settings.local_rank || is_pod ? 0 : who.size);
  if (who.rank >= who.size) {
    throw std::invalid_argument(
        fmt::format("RANK={} must be less than {}={}", who.rank, settings.size_variable, who.size));
  }
  const bool is_known = who.local_size > 0;
  if (who.local_rank >= (is_known ? who.local_size : who.size)) {
    throw std::invalid_argument(fmt::format("LOCAL_RANK={} must be less than {}={}", who.local_rank,
                                            is_known ? "LOCAL_WORLD_SIZE" : "WORLD_SIZE",
                                            is_known ? who.local_size : who.size));
  }
  return who;
}

namespace {

// The stores in use in this process, by their settings. A second communicator shares the store of
// the first: there is one server and one port.
class StoresInUse {
 public:
  // The store of `place`, or the result of `make`. One thread makes it, and the others wait until
  // the deadline. If it fails, the next thread tries.
  template <typename Make>
  std::shared_ptr<Store> find_or_make(const std::string& place, Deadline deadline,
                                      const Make& make) {
    std::unique_lock lock(mutex_);
    Place& here = places_[place];
    if (!changed_.wait_until(lock, deadline, [&here] { return !here.is_being_made; })) {
      throw Error(ErrorCode::kDeadline, kNoPeer,
                  "another thread of this process is still connecting to the store of the job: see "
                  "why it waits, or set a longer timeout");
    }
    if (auto store = here.store.lock()) return store;
    here.is_being_made = true;
    lock.unlock();
    const Making making(*this, here);
    const std::shared_ptr<Store> store = make();
    lock.lock();
    here.store = store;
    lock.unlock();
    return store;
  }

 private:
  struct Place {
    std::weak_ptr<Store> store;
    bool is_being_made = false;
  };

  // Guard: lives while a thread makes the store.
  class Making {
   public:
    Making(StoresInUse& stores, Place& place) : stores_(stores), place_(place) {}
    ~Making() {
      const std::lock_guard lock(stores_.mutex_);
      place_.is_being_made = false;
      stores_.changed_.notify_all();
    }
    Making(const Making&) = delete;
    Making& operator=(const Making&) = delete;

   private:
    StoresInUse& stores_;
    Place& place_;
  };

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, Place> places_;  // never erased: waiting threads hold references
};

// The process id separates a forked process from its parent, whose stores and threads it cannot
// use.
std::string place_of(const LaunchEnvironment& who) {
  const Settings settings = read_settings();
  return fmt::format("{} of {} at {} {} {} in {}", who.rank, who.size, settings.store,
                     settings.master_host, settings.master_port, ::getpid());
}

}  // namespace

std::shared_ptr<Store> store_from_environment(const LaunchEnvironment& who, Deadline deadline) {
  static StoresInUse in_use;
  try {
    return in_use.find_or_make(place_of(who), deadline,
                               [&] { return joined_once(remembered(find_store(who, deadline))); });
  } catch (const Error& error) {
    throw Error(error.code(), error.peer(), by_rank(who.rank, error.what()));
  }
}

void tell_unknown_settings(Store& store, const Log& log) {
  for (const UnknownSetting& unknown : unknown_settings()) {
    if (store.add("unknown setting/" + unknown.name, 1) != 1) continue;
    write_line(log, describe(unknown));
  }
}

}  // namespace kolo::inline v0
