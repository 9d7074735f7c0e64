// Client of a TCP store: one connection, no thread of its own.
//
// Several threads may call at once. A waiting thread becomes the reader if there is none: it polls
// the socket and delivers replies to all waiting threads. When it has its own reply, another
// waiting thread becomes the reader.
//
// Requests are queued until the socket takes them. So non-blocking calls return at once, and no
// thread waits while it holds the mutex. Requests of note() and ask() are kept by id until any call
// reads their reply; the age of the oldest is the time for which the server has been silent.
#include "transports/store/tcp_client.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <condition_variable>
#include <map>
#include <mutex>
#include <utility>

#include "transports/error.h"
#include "transports/posix/epoll.h"
#include "transports/posix/event.h"
#include "transports/posix/host/identity.h"
#include "transports/posix/socket.h"
#include "transports/store/past_jobs.h"
#include "transports/store/timeouts.h"
#include "transports/store/wire.h"

namespace kolo::inline v0 {

namespace {

using namespace std::chrono_literals;
using store_wire::Kind;
using store_wire::Message;

// If a hello had less time than this, the error message suggests a longer timeout.
constexpr Clock::duration kHelloNeeds = 1s;
// Silence longer than a busy machine explains; it is worth reporting.
constexpr Clock::duration kWorthAWord = 400ms;

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

// Possible reasons for a missing answer, and what to do.
std::string why_silent(int server) {
  if (server == kNoPeer)
    return "the process that serves it (the launcher or rank 0) hangs, or another program seems to "
           "own that port: find and end it, or name another store in KOLO_STORE";
  return fmt::format(
      "rank {}, which serves it, hangs, or another program seems to own that port: find and end "
      "it, or choose another MASTER_PORT",
      server);
}

class TcpStore final : public Store {
 public:
  TcpStore(posix::Descriptor socket, const std::string& address, const TcpStoreOptions& options)
      : socket_(std::move(socket)),
        address_(address),
        server_(options.server),
        patience_(patience_of(options.start, options.deadline)) {
    posix::set_low_latency(socket_);
    posix::set_keepalive(socket_);
    watched_.add(socket_.get(), EPOLLIN, 0);
    watched_.add(failed_.descriptor(), EPOLLIN, 1);
  }

  // False if another attempt may succeed; `why` says why.
  bool greet(const TcpStoreOptions& options, std::string& why) {
    const auto start = options.start;
    const Deadline deadline = std::min(options.deadline, options.answer_by);
    const std::string who = fmt::format("{}, pid {}", posix::host_name(), ::getpid());
    std::optional<Message> reply;
    try {
      reply = call({Kind::kHello, 0, store_wire::kVersion, options.job, who}, deadline);
    } catch (const Error&) {
      if (still_serves_past(options, why)) return false;
      if (has_heard_) throw;
      why =
          "it closed the connection before it answered the hello: too many other connections may "
          "be waiting there, or another job or program has that port";
      return false;
    }
    if (!reply) {
      throw Error(
          ErrorCode::kDeadline, kNoPeer,
          fmt::format(
              "waited {:.3g} s for {} to answer the hello: {}{}", seconds_since(start), describe(),
              Clock::now() - start < kHelloNeeds ? "give it more time (a longer timeout); or " : "",
              why_silent(server_)));
    }
    if (reply->number != store_wire::kVersion) {
      throw Error(
          ErrorCode::kProtocol, kNoPeer,
          fmt::format("{} speaks a different version: run the same build of kolo everywhere",
                      describe()));
    }
    job_id_ = reply->value;
    return !still_serves_past(options, why);
  }

  void set(std::string_view key, std::string_view value) override {
    call_now({Kind::kSet, 0, 0, std::string(key), std::string(value)});
  }

  std::optional<std::string> try_get(std::string_view key) override {
    auto reply = call_now({Kind::kTryGet, 0, 0, std::string(key), {}});
    if (reply.kind == Kind::kNothing) return std::nullopt;
    return std::move(reply.value);
  }

  void note(std::string_view key, std::string_view value) override {
    const std::lock_guard lock(mutex_);
    if (has_ended_well()) return;
    throw_if_over(Kind::kSet);
    ask_later({Kind::kSet, 0, 0, std::string(key), std::string(value)}, nullptr);
  }

  std::shared_ptr<const Answer> ask(std::string_view key) override {
    const std::lock_guard lock(mutex_);
    if (!has_ended_well()) throw_if_over(Kind::kTryGet);
    const auto answer = std::make_shared<Answer>();
    look();
    if (is_over_ || last_patience() <= Clock::now()) {  // no new requests to a hanging server
      answer->has_come = true;
    } else {
      ask_later({Kind::kTryGet, 0, 0, std::string(key), {}}, answer);
    }
    return answer;
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

  void join(int rank, std::string_view communicator, int size) override {
    const auto reply =
        call_now({Kind::kJoin, 0, rank, std::string(communicator), std::to_string(size)});
    if (reply.kind != Kind::kNothing) return;
    const std::lock_guard lock(mutex_);
    fail(fmt::format("{} ({})", reply.value, describe()));  // for this process alone
    end();
    throw Error(ErrorCode::kUnavailable, rank, *failure_);
  }

  void retire(std::string_view prefix, int users) override {
    const std::lock_guard lock(mutex_);
    if (!is_over_) put({Kind::kRetire, 0, users, std::string(prefix), {}});
  }

  void leave() override {
    std::unique_lock lock(mutex_);
    if (is_over_) return;
    put({Kind::kLeave, 0, 0, {}, {}});
    push_until(lock, last_patience());
  }

  std::optional<std::string> failure() override {
    const std::lock_guard lock(mutex_);
    look();
    return failure_;
  }

  std::string post_failure(std::string_view text) override {
    Deadline deadline;
    {
      const std::lock_guard lock(mutex_);
      if (!questions_.empty()) look();
      if (failure_) return *failure_;
      const auto now = Clock::now();
      deadline = now - silent_since() < kWorthAWord ? last_patience() : now;
    }
    const Message message{
        Kind::kFail, 0, 0, {}, std::string(text.substr(0, store_wire::kLongestValue))};
    const auto reply = call(message, deadline);
    const std::lock_guard lock(mutex_);
    fail(reply ? reply->value : message.value);
    if (!reply) end();  // the failure was sent; no more requests to a hanging server
    return *failure_;
  }

  std::string silence() override {
    const std::lock_guard lock(mutex_);
    look();
    if (is_over_ || Clock::now() - silent_since() < kWorthAWord) return "";
    const std::string who = server_ == kNoPeer
                                ? describe()
                                : fmt::format("rank {}, which serves {},", server_, describe());
    return fmt::format("{} has not answered for {:.1f} s", who, seconds_since(silent_since()));
  }

  std::string suspicion() override {
    const std::lock_guard lock(mutex_);
    look();
    if (server_ == kNoPeer || is_over_ || Clock::now() - silent_since() < kWorthAWord) return "";
    return gone("serves", "does not answer, so it hangs, or the network is cut");
  }

  std::string job_id() const override { return job_id_; }
  int descriptor() const override { return watched_.descriptor(); }
  std::string describe() const override { return "the store at " + address_; }

 private:
  // True, and `why` says so, if the job of the store is known as a failed one.
  bool still_serves_past(const TcpStoreOptions& options, std::string& why) const {
    if (options.past == nullptr) return false;
    const bool is_past = options.past->has(job_id_) || (failure_ && had_met_);
    if (is_past) why = std::string(kStillServes) + failure_.value_or("");
    return is_past;
  }

  Message call_now(Message message) {
    auto reply = call(std::move(message), Clock::now() + patience_);
    if (reply) return std::move(*reply);
    const std::lock_guard lock(mutex_);
    give_up();
    throw Error(ErrorCode::kDeadline, server_, *failure_);
  }

  // Returns the reply, or nothing after the deadline. Error kAborted if the job fails while a kGet
  // waits.
  std::optional<Message> call(Message message, Deadline deadline) {
    std::unique_lock lock(mutex_);
    throw_if_over(message.kind);
    message.id = ++last_id_;
    const auto slot = replies_.emplace(message.id, std::nullopt).first;
    const Slot cleaner{replies_, slot};
    put(message);
    push_until(lock, deadline);
    while (!slot->second) {
      throw_if_over(message.kind);
      deadline = renewed(deadline, patience_);
      if (Clock::now() >= deadline) {
        if (message.kind == Kind::kGet) put({Kind::kForget, message.id, 0, {}, {}});
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

  // Sends and reads as much as possible without waiting. A current reader serves this thread, too.
  void look() {
    if (is_over_) return;
    push();
    if (!has_reader_) read_what_is_there();
    notice_suspension();
    if (!is_over_ && Clock::now() - silent_since() > patience_) give_up();
  }

  // If this process was suspended, the server may have been, too. Its silence counts from now on,
  // unless it has answered nothing since the last time.
  void notice_suspension() {
    const auto now = Clock::now();
    const bool was_away = now - std::exchange(looked_, now) > kAway;
    if (!was_away || questions_.empty() || std::exchange(is_excused_, true)) return;
    for (auto& [id, question] : questions_) question.since = now;
  }

  // Time of the oldest request of note() or ask() without a reply, else now. Call look() first.
  Clock::time_point silent_since() const {
    return questions_.empty() ? Clock::now() : questions_.begin()->second.since;
  }

  // Counts the silence so far: the deadline is in the past if the server has been silent for long.
  Deadline last_patience() const { return silent_since() + kLastPatience; }

  void ask_later(Message message, std::shared_ptr<Answer> answer) {
    message.id = ++last_id_;
    put(message);
    questions_[message.id] = {Clock::now(), std::move(answer)};
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
    std::array<char, 16384> bytes;  // not cleared: waiting ranks call this very often
    while (!is_over_) {
      const auto got = posix::receive_some(socket_, bytes.data(), bytes.size());
      if (got.is_closed) return lose();
      if (got.bytes == 0) return;
      has_heard_ = true;
      is_excused_ = false;
      in_.append(bytes.data(), got.bytes);
      try {
        while (auto message = store_wire::take(in_)) handle(std::move(*message));
      } catch (const Error& error) {
        end();
        return fail(
            fmt::format("{} sent invalid bytes ({}): another program seems to own that port",
                        describe(), error.what()));
      }
    }
  }

  void handle(Message message) {
    if (message.kind == Kind::kFailed) {
      had_met_ |= message.number != 0;
      if (job_id_.empty()) job_id_ = message.key;
      return fail(message.value);
    }
    if (message.kind == Kind::kGoodbye) {
      end();
      watched_.remove(socket_.get());  // the connection's end need not wake anyone
      return;
    }
    const auto question = questions_.find(message.id);
    if (question != questions_.end()) {
      if (message.kind == Kind::kNothing) {
        give(question->second, std::nullopt);
      } else {
        give(question->second, std::move(message.value));
      }
      questions_.erase(question);
      return;
    }
    const auto slot = replies_.find(message.id);  // absent: a late reply to a call that gave up
    if (slot != replies_.end()) slot->second = std::move(message);
  }

  // Ends all communication; open queries get an empty answer.
  void end() {
    is_over_ = true;
    for (const auto& [id, question] : questions_) give(question, std::nullopt);
    questions_.clear();
  }

  // The server's process ended without a goodbye. This is a failure itself, as no rank can learn of
  // other failures any more.
  void lose() {
    end();
    fail(gone("served", "has died or was unreachable"));
  }

  // Sends no more requests after one without an answer, as each would wait as long. If the server
  // was only stopped, it later reads this failure before it sees the connection end.
  void give_up() {
    const std::chrono::duration<double> patience = patience_;
    fail(gone("serves", fmt::format("has not answered for {:.1f} s, so it hangs, or the network is "
                                    "cut",
                                    patience.count())));
    put({Kind::kFail, ++last_id_, 0, {}, *failure_});
    end();
  }

  std::string gone(std::string_view served, std::string_view how) const {
    if (server_ != kNoPeer)
      return fmt::format("rank {} is gone, which {} {}: it {}", server_, served, describe(), how);
    return fmt::format("{} is gone: the process that {} it (the launcher or rank 0) {}", describe(),
                       served, how);
  }

  void fail(const std::string& text) {
    if (!failure_) {
      const std::string said = text.substr(0, text.find('\0'));  // what() ends at the first NUL
      failure_ =
          said.empty() ? "the job has failed, and the rank that reported it gave no reason" : said;
      failed_.ring();  // never reset, so the descriptor stays readable
    }
    changed_.notify_all();
  }

  // Rank 0, which serves the store, may finish first. The other ranks go on without the store and
  // detect failures by their channels.
  bool has_ended_well() const { return is_over_ && !failure_; }

  void throw_if_over(Kind kind) {
    if (failure_ && kind == Kind::kGet) throw Error(ErrorCode::kAborted, kNoPeer, *failure_);
    if (!is_over_) return;
    if (failure_) throw Error(ErrorCode::kAborted, kNoPeer, *failure_);
    const std::string server = server_ == kNoPeer ? "the process" : fmt::format("rank {}", server_);
    throw Error(ErrorCode::kUnavailable, server_,
                fmt::format("{}, which served {}, has ended: keep {} until all ranks are done, or "
                            "start the ranks with kolo-run, or use a file (KOLO_STORE)",
                            server, describe(), server_ == kNoPeer ? "it" : server));
  }

  // std::invalid_argument if the message is too long.
  void put(const Message& message) {
    out_ += store_wire::encode(message);
    push();
  }

  // Sends as much as the socket takes now.
  void push() {
    while (!out_.empty()) {
      const auto sent = posix::send_some(socket_, out_.data() + sent_, out_.size() - sent_);
      sent_ += sent.bytes;
      // A closed connection may still hold the server's last messages; reading notices the end.
      const bool is_done = sent.is_closed || sent_ == out_.size();
      if (!is_done && sent.bytes == 0) return;
      if (is_done) out_.clear();
      if (is_done) sent_ = 0;
    }
  }

  // False if the socket has not taken all bytes by the deadline.
  bool push_until(std::unique_lock<std::mutex>& lock, Deadline deadline) {
    while (!out_.empty() && !is_over_) {
      if (Clock::now() >= deadline) return false;
      lock.unlock();
      wait_for(socket_, POLLOUT, deadline);
      lock.lock();
      push();
    }
    return true;
  }

  using Replies = std::map<std::uint64_t, std::optional<Message>>;
  struct Slot {
    Replies& replies;
    Replies::iterator slot;
    ~Slot() { replies.erase(slot); }
  };

  // A request of note() or ask() without a reply yet.
  struct Question {
    Clock::time_point since;
    std::shared_ptr<Answer> answer;  // null for note()
  };

  static void give(const Question& question, std::optional<std::string> value) {
    if (question.answer == nullptr) return;
    question.answer->value = std::move(value);
    question.answer->has_come = true;
  }

  posix::Descriptor socket_;
  const std::string address_;
  const int server_;  // a rank, or kNoPeer
  const Clock::duration patience_;
  posix::Epoll watched_;
  std::string job_id_;  // constant after greet()
  posix::Event failed_;

  std::mutex mutex_;  // guards all members below
  std::condition_variable changed_;
  bool has_reader_ = false;
  bool has_heard_ = false;  // at least one byte from the server
  bool is_over_ = false;
  bool is_excused_ = false;  // see notice_suspension()
  Clock::time_point looked_ = Clock::now();
  bool had_met_ = false;  // all ranks of a failed job
  std::uint64_t last_id_ = 0;
  Replies replies_;
  std::map<std::uint64_t, Question> questions_;  // by id, so the oldest is first
  std::string in_;
  std::string out_;       // bytes to send
  std::size_t sent_ = 0;  // bytes of `out_` that the socket has taken
  std::optional<std::string> failure_;
};

}  // namespace

std::shared_ptr<Store> tcp_store_over(posix::Descriptor socket, const std::string& address,
                                      const TcpStoreOptions& options, std::string& why) {
  auto store = std::make_shared<TcpStore>(std::move(socket), address, options);
  return store->greet(options, why) ? store : nullptr;
}

}  // namespace kolo::inline v0
