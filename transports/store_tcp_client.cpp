// A rank's end of a TCP store: one connection, no thread.
//
// Several threads may ask at once. Whoever waits and finds nobody reading becomes the reader: it
// polls the socket and hands out what arrives, to itself and to the others; when it has its own
// reply, another takes over.
#include "transports/store_tcp.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>

#include "transports/error.h"
#include "transports/posix/epoll.h"
#include "transports/posix/event.h"
#include "transports/posix/identity.h"
#include "transports/posix/socket.h"
#include "transports/store_wire.h"

namespace kolo {

namespace {

using namespace std::chrono_literals;
using store_wire::Kind;
using store_wire::Message;

// For calls that have no deadline of their own: the server answers these at once, or it hangs. Who
// gave less to connecting would not wait that long later either; a busy machine needs the least.
constexpr Clock::duration kMostPatience = 30s;
constexpr Clock::duration kLeastPatience = 3s;
// Who had less for a hello than this has not waited for anybody.
constexpr Clock::duration kHelloNeeds = 1s;
constexpr auto kRetryEvery = 50ms;

int milliseconds_until(Deadline deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
  return static_cast<int>(std::clamp<std::chrono::milliseconds>(left, 0ms, 1h).count());
}

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

bool wait_for(const posix::Descriptor& socket, short events, Deadline deadline) {
  pollfd watched{socket.get(), events, 0};
  return ::poll(&watched, 1, milliseconds_until(deadline)) > 0;
}

class TcpStore final : public Store {
 public:
  TcpStore(posix::Descriptor socket, std::string address, Deadline deadline,
           Clock::time_point start, int server)
      : socket_(std::move(socket)),
        address_(std::move(address)),
        server_(server),
        patience_(std::clamp(deadline - start, kLeastPatience, kMostPatience)) {
    posix::set_low_latency(socket_);
    posix::set_keepalive(socket_);
    watched_.add(socket_.get(), EPOLLIN, 0);
    watched_.add(failed_.descriptor(), EPOLLIN, 1);
  }

  // False where the server hung up without a word.
  bool greet(Deadline deadline, Clock::time_point start) {
    const std::string who = fmt::format("{}, pid {}", posix::host_name(), ::getpid());
    std::optional<Message> reply;
    try {
      reply = call({Kind::kHello, 0, store_wire::kVersion, {}, who}, deadline);
    } catch (const Error&) {
      if (has_heard_) throw;
      return false;
    }
    if (!reply) {
      throw Error(
          ErrorCode::kDeadline, kNoPeer,
          fmt::format("waited {:.3g} s for {} to answer the hello: {}", seconds_since(start),
                      describe(),
                      Clock::now() - start < kHelloNeeds
                          ? "give it more time (a longer timeout); or another program owns that "
                            "port: end it, or choose another MASTER_PORT or KOLO_STORE"
                          : "another program seems to own that port: end it, or choose another "
                            "MASTER_PORT or KOLO_STORE"));
    }
    if (reply->number != store_wire::kVersion) {
      throw Error(ErrorCode::kProtocol, kNoPeer,
                  fmt::format("{} speaks another version: run the same build of kolo everywhere",
                              describe()));
    }
    return true;
  }

  void set(std::string_view key, std::string_view value) override {
    call_now({Kind::kSet, 0, 0, std::string(key), std::string(value)});
  }

  std::optional<std::string> try_get(std::string_view key) override {
    auto reply = call_now({Kind::kTryGet, 0, 0, std::string(key), {}});
    if (reply.kind == Kind::kNothing) return std::nullopt;
    return std::move(reply.value);
  }

  std::string get(std::string_view key, Deadline deadline) override {
    const auto start = Clock::now();
    auto reply = call({Kind::kGet, 0, 0, std::string(key), {}}, deadline);
    if (reply) return std::move(reply->value);
    throw Error(ErrorCode::kDeadline, kNoPeer,
                fmt::format("waited {:.1f} s for the key '{}' in {}: no rank has set it",
                            seconds_since(start), key, describe()));
  }

  std::int64_t add(std::string_view key, std::int64_t delta) override {
    return call_now({Kind::kAdd, 0, delta, std::string(key), {}}).number;
  }

  void join(int rank, std::string_view communicator) override {
    tell({Kind::kJoin, 0, rank, std::string(communicator), {}});
  }

  void leave() override {
    const std::lock_guard lock(mutex_);
    if (!is_over_) write({Kind::kLeave, 0, 0, {}, {}}, Clock::now() + patience_);
  }

  std::optional<std::string> failure() override {
    const std::lock_guard lock(mutex_);
    if (!has_reader_ && !is_over_) read_what_is_there();
    return failure_;
  }

  std::string post_failure(std::string_view text) override {
    {
      const std::lock_guard lock(mutex_);
      if (failure_) return *failure_;
    }
    const Message message{
        Kind::kFail, 0, 0, {}, std::string(text.substr(0, store_wire::kLongestValue))};
    const auto reply = call(message, Clock::now() + patience_);
    const std::lock_guard lock(mutex_);
    fail(reply ? reply->value : std::string(text));
    if (!reply) give_up();
    return *failure_;
  }

  int descriptor() const override { return watched_.descriptor(); }
  std::string describe() const override { return "the store at " + address_; }

 private:
  Message call_now(Message message) {
    auto reply = call(std::move(message), Clock::now() + patience_);
    if (reply) return std::move(*reply);
    const std::lock_guard lock(mutex_);
    give_up();
    // Should the server only have been stopped, it reads why its ranks are gone before their ends.
    write({Kind::kFail, ++last_id_, 0, {}, *failure_}, Clock::now());
    throw Error(ErrorCode::kDeadline, server_, *failure_);
  }

  void tell(const Message& message) {
    const std::lock_guard lock(mutex_);
    throw_if_over(message.kind);
    write(message, Clock::now() + patience_);
  }

  // The reply, or nothing once the deadline has passed. Error kAborted where a kGet waits and the
  // job fails.
  std::optional<Message> call(Message message, Deadline deadline) {
    std::unique_lock lock(mutex_);
    throw_if_over(message.kind);
    message.id = ++last_id_;
    const auto slot = replies_.emplace(message.id, std::nullopt).first;
    const Slot cleaner{replies_, slot};
    write(message, deadline);
    while (!slot->second) {
      throw_if_over(message.kind);
      if (Clock::now() >= deadline) {
        if (message.kind == Kind::kGet)
          write({Kind::kForget, message.id, 0, {}, {}}, Clock::now() + patience_);
        return std::nullopt;
      }
      if (has_reader_) {
        changed_.wait_until(lock, deadline);
      } else {
        read_for_all(lock, deadline);
      }
    }
    return std::move(*slot->second);
  }

  void read_for_all(std::unique_lock<std::mutex>& lock, Deadline deadline) {
    has_reader_ = true;
    lock.unlock();
    wait_for(socket_, POLLIN, deadline);
    lock.lock();
    has_reader_ = false;
    read_what_is_there();
    changed_.notify_all();
  }

  void read_what_is_there() {
    std::array<char, 16384> bytes{};
    while (!is_over_) {
      const auto got = posix::receive_some(socket_, bytes.data(), bytes.size());
      if (got.is_closed) return lose();
      if (got.bytes == 0) return;
      has_heard_ = true;
      in_.append(bytes.data(), got.bytes);
      try {
        while (auto message = store_wire::take(in_)) handle(std::move(*message));
      } catch (const Error& error) {
        is_over_ = true;
        return fail(fmt::format("{} sent bytes that make no sense ({}): is it kolo's?", describe(),
                                error.what()));
      }
    }
  }

  void handle(Message message) {
    if (message.kind == Kind::kFailed) return fail(message.value);
    if (message.kind == Kind::kGoodbye) {
      is_over_ = true;
      watched_.remove(socket_.get());  // its end is no news
      return;
    }
    const auto slot = replies_.find(message.id);  // absent: a late reply to a call that gave up
    if (slot != replies_.end()) slot->second = std::move(message);
  }

  // The server's process is gone without a goodbye: nobody can learn of a failure any more, so that
  // is one.
  void lose() {
    is_over_ = true;
    fail(gone("served", "has died or was unreachable"));
  }

  // A server that has not answered once is not asked again: each call would wait as long.
  void give_up() {
    is_over_ = true;
    const std::chrono::duration<double> patience = patience_;
    fail(gone("serves", fmt::format("has not answered for {:.1f} s, so it hangs, or the network is "
                                    "cut",
                                    patience.count())));
  }

  std::string gone(std::string_view served, std::string_view how) const {
    if (server_ != kNoPeer)
      return fmt::format("rank {} is gone, which {} {}: it {}", server_, served, describe(), how);
    return fmt::format("{} is gone: the process that {} it (the launcher or rank 0) {}", describe(),
                       served, how);
  }

  void fail(const std::string& text) {
    if (!failure_) {
      const std::string said = text.substr(0, text.find('\0'));  // so far an error can say it
      failure_ = said.empty() ? "the job has failed, and who posted it did not say why" : said;
      failed_.ring();  // never silenced: a failure stays news
    }
    changed_.notify_all();
  }

  void throw_if_over(Kind kind) {
    if (failure_ && kind == Kind::kGet) throw Error(ErrorCode::kAborted, kNoPeer, *failure_);
    if (!is_over_) return;
    throw Error(failure_ ? ErrorCode::kAborted : ErrorCode::kUnavailable, kNoPeer,
                failure_ ? *failure_
                         : fmt::format("{} has ended in good order: the job is over", describe()));
  }

  // Short and rare: holding the lock while the socket takes it is fine.
  void write(const Message& message, Deadline deadline) {
    const std::string bytes = store_wire::encode(message);
    std::size_t done = 0;
    while (done < bytes.size()) {
      const auto sent = posix::send_some(socket_, bytes.data() + done, bytes.size() - done);
      done += sent.bytes;
      if (sent.is_closed)
        return;  // what the server said last is still to be read; reading notices the end
      if (sent.bytes == 0 && !wait_for(socket_, POLLOUT, deadline)) return lose();
    }
  }

  using Replies = std::map<std::uint64_t, std::optional<Message>>;
  struct Slot {
    Replies& replies;
    Replies::iterator slot;
    ~Slot() { replies.erase(slot); }
  };

  posix::Descriptor socket_;
  const std::string address_;
  const int server_;  // a rank, or kNoPeer
  const Clock::duration patience_;
  posix::Epoll watched_;
  posix::Event failed_;

  std::mutex mutex_;  // all below
  std::condition_variable changed_;
  bool has_reader_ = false;
  bool has_heard_ = false;  // anything at all
  bool is_over_ = false;
  std::uint64_t last_id_ = 0;
  Replies replies_;
  std::string in_;
  std::optional<std::string> failure_;
};

// One attempt at one address; 0 or errno.
int try_to_connect(const posix::Address& address, Deadline deadline, posix::Descriptor& socket) {
  socket = posix::start_connecting(address);
  if (!socket.is_open()) return errno;
  if (errno != 0 && errno != EINPROGRESS) return errno;
  if (errno == EINPROGRESS && !wait_for(socket, POLLOUT, deadline)) return ETIMEDOUT;
  return posix::connect_result(socket);
}

}  // namespace

std::shared_ptr<Store> tcp_store_over(posix::Descriptor socket, std::string address,
                                      Deadline deadline) {
  const auto start = Clock::now();
  auto store =
      std::make_shared<TcpStore>(std::move(socket), std::move(address), deadline, start, kNoPeer);
  return store->greet(deadline, start) ? store : nullptr;
}

std::shared_ptr<Store> connect_tcp_store(const std::string& host, std::uint16_t port,
                                         Deadline deadline, int server) {
  const auto start = Clock::now();
  const std::string address = posix::host_and_port(host, port);
  std::string why;
  do {
    for (const auto& candidate : posix::resolve(host, port, why)) {
      posix::Descriptor socket;
      const int error = try_to_connect(candidate, deadline, socket);
      if (error == 0) {
        auto store =
            std::make_shared<TcpStore>(std::move(socket), address, deadline, start, server);
        if (store->greet(deadline, start)) return store;
        why =
            "it hung up before it answered the hello: a crowd of strangers may be there, or "
            "another program";
      } else {
        why = posix::error_text(error);
      }
    }
    std::this_thread::sleep_until(std::min<Deadline>(deadline, Clock::now() + kRetryEvery));
  } while (Clock::now() < deadline);
  throw Error(ErrorCode::kDeadline, kNoPeer,
              fmt::format("waited {:.1f} s for the store at {} ({}): start rank 0 or the launcher "
                          "that serves it, or "
                          "correct MASTER_ADDR and MASTER_PORT",
                          seconds_since(start), address, why));
}

}  // namespace kolo
