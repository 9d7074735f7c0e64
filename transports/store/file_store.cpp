// Store in a file that all ranks can open: tables made of the records of a log (file_log.h).
//
// Three kinds of lock bytes lie beyond the end of any log (posix/byte_lock.h):
//
//     kLogLock            Exclusive, held for microseconds while appending. A process stopped at
//                         that moment keeps it; waiters sleep and retry up to a deadline.
//     kUserLock           Shared, held while a store is open. A process that can take it
//                         exclusively is the only user: on opening it empties the log, which is
//                         left from a job that ended badly; on closing it removes the file.
//     kRankLock + rank    Exclusive, held by that rank after join(). If another process can take
//                         it, the rank is dead.
//
// A job that has failed may linger in the file while the next one begins. The next one removes the
// file from its path and makes another there.
//
// note(), ask() and the failures found by failure() never wait for the log's lock. If it is taken,
// they are queued; the next call that gets the lock handles the queue in order.
#include <fmt/format.h>
#include <unistd.h>
#include <algorithm>
#include <deque>
#include <mutex>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "transports/base/check.h"
#include "transports/error.h"
#include "transports/posix/byte_lock.h"
#include "transports/posix/host/identity.h"
#include "transports/rendezvous.h"
#include "transports/store/file_log.h"
#include "transports/store/members.h"
#include "transports/store/past_jobs.h"
#include "transports/store/tables.h"
#include "transports/store/timeouts.h"

namespace kolo::inline v0 {

namespace {

using namespace std::chrono_literals;

constexpr off_t kLogLock = off_t{1} << 40;
constexpr off_t kUserLock = kLogLock + 1;
constexpr off_t kRankLock = kLogLock + 2;
constexpr std::uint32_t kLongest = FileLog::kLongest;
// A log is rewritten if it is longer than this, and most of it is obsolete.
constexpr std::size_t kShortLog = 256 << 10;
constexpr auto kLongestNap = 20ms;
constexpr auto kLongestNapForTheLog = 2ms;
constexpr auto kLookForTheDeadEvery = 200ms;

using Kind = FileLog::Kind;
using Record = FileLog::Record;

// The rank and the size of its communicator, in one number.
std::int64_t pack(int rank, int size) { return std::int64_t{size} << 32 | rank; }
int rank_of(std::int64_t packed) { return static_cast<int>(packed & 0x7fff'ffff); }
int size_of(std::int64_t packed) { return static_cast<int>(packed >> 32); }

class FileStore final : public Store {
 public:
  FileStore(std::string path, Deadline deadline, const PastJobs* past)
      : path_(std::move(path)), patience_(patience_of(Clock::now(), deadline)), log_(path_) {
    while (!open_and_enter(deadline, past)) {
    }
  }

  // A forked child changes nothing: it shares its locks with its parent.
  ~FileStore() override {
    if (::getpid() != process_) return;
    try {
      // The log's lock orders processes that close at once: the last one removes the file.
      with_log(last_patience(), [this] {
        posix::unlock_byte(log_.file(), kUserLock);
        if (!posix::is_locked_by_others(log_.file(), kUserLock)) log_.remove();
      });
    } catch (const std::exception&) {  // the file stays; the next job finds it unused
    }
  }

  void set(std::string_view key, std::string_view value) override {
    require_short(key, value);
    write(patience(), [&] { append({Kind::kValue, std::string(key), std::string(value), 0}); });
  }

  void note(std::string_view key, std::string_view value) override {
    require_short(key, value);
    put_off({Kind::kValue, std::string(key), std::string(value), 0});
  }

  std::shared_ptr<const Answer> ask(std::string_view key) override {
    const std::lock_guard lock(mutex_);
    const auto answer = std::make_shared<Answer>();
    put_off_.push_back({{Kind::kValue, std::string(key), {}, 0}, answer});
    catch_up();
    return answer;
  }

  void retire(std::string_view prefix, int users) override {
    require_short(prefix, {});
    put_off({Kind::kRetire, std::string(prefix), {}, users});
  }

  std::optional<std::string> try_get(std::string_view key) override {
    const std::lock_guard lock(mutex_);
    read_news();
    const std::string* const found = tables_.find(key);
    return found == nullptr ? std::nullopt : std::optional(*found);
  }

  std::string get(std::string_view key, Deadline deadline) override {
    const auto start = Clock::now();
    std::chrono::microseconds nap = 100us;
    while (true) {
      if (auto value = try_get(key)) return *value;
      if (const auto text = failure()) throw Error(ErrorCode::kAborted, kNoPeer, *text);
      deadline = renewed(deadline, patience_);
      if (Clock::now() >= deadline) break;
      std::this_thread::sleep_until(std::min<Deadline>(deadline, Clock::now() + nap));
      nap = std::min<std::chrono::microseconds>(nap * 2, kLongestNap);
    }
    const std::chrono::duration<double> waited = Clock::now() - start;
    throw Error(ErrorCode::kDeadline, kNoPeer,
                fmt::format("waited {:.1f} s for the key '{}' in {}: no rank has set it",
                            waited.count(), key, describe()));
  }

  std::int64_t add(std::string_view key, std::int64_t delta) override {
    require_short(key, {});
    return write(patience(), [&] {
      const std::int64_t sum = tables_.sum(key, delta);
      append({Kind::kCounter, std::string(key), {}, sum});
      return sum;
    });
  }

  void join(int rank, std::string_view communicator, int size) override {
    require_short(communicator, {});
    const Membership wanted{rank, std::string(communicator), size,
                            fmt::format("{}, pid {}", posix::host_name(), ::getpid())};
    write(patience(), [&] {
      const auto answer = members_.judge(wanted);
      if (answer.verdict == Members::Verdict::kRefused) {
        refusal_ = fmt::format("{} ({})", answer.text, describe());
        throw Error(ErrorCode::kUnavailable, rank, *refusal_);
      }
      if (answer.verdict == Members::Verdict::kTakenTwice) {
        return fail_in_file(answer.text);
      }
      posix::lock_byte(log_.file(), kRankLock + rank);
      append({Kind::kJoin, wanted.communicator, wanted.who, pack(rank, size)});
      own_.push_back(wanted);
    });
  }

  void leave() override {
    if (!is_joined()) return;
    write(last_patience(), [&] {
      if (own_.empty()) return;  // another thread has left meanwhile
      const Membership left = std::move(own_.back());
      own_.pop_back();
      append({Kind::kLeave, left.communicator, {}, left.rank});
      // This was the rank's last join() here, so other ranks stop watching it.
      if (!is_own(left.rank)) posix::unlock_byte(log_.file(), kRankLock + left.rank);
    });
  }

  std::optional<std::string> failure() override {
    const std::lock_guard lock(mutex_);
    catch_up();
    if (refusal_) return refusal_;
    read_news();
    if (log_.failure()) return log_.failure();
    if (unwritten_failure_) return unwritten_failure_;
    if (const auto death = find_a_death()) {
      const posix::ByteLock lock_of_log(log_.file(), kLogLock);
      if (lock_of_log.is_held()) fail_in_file(*death);  // else the next call finds it again
    }
    return log_.failure();
  }

  std::string post_failure(std::string_view text) override {
    const std::string said(text.substr(0, kLongest));
    try {
      return with_log(last_patience(), [&] {
        if (refusal_) return *refusal_;
        fail_in_file(said);
        return *log_.failure();
      });
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kDeadline) throw;
    }
    // It is queued for the other ranks. On this rank it is the failure from now on.
    const std::lock_guard lock(mutex_);
    unwritten_failure_ = said;
    return log_.failure().value_or(said);
  }

  std::string job_id() const override {
    const std::lock_guard lock(mutex_);
    return log_.id();
  }
  std::string describe() const override { return "the store in the file " + path_; }

 private:
  // An operation queued until the log is free.
  struct PutOff {
    Record record;
    std::shared_ptr<Answer> answer;  // of ask(); null for a record to write
  };

  Deadline patience() const { return Clock::now() + patience_; }

  // Counts the time that the lock has been refused already, so that repeated calls do not add up.
  Deadline last_patience() {
    const std::lock_guard lock(mutex_);
    constexpr auto kLeast = 100ms;
    const auto now = Clock::now();
    return std::max(now + kLeast, refused_since_.value_or(now) + kLastPatience);
  }

  // Calls `body` with the log's lock. Error kDeadline if another process keeps it.
  template <typename Body>
  std::invoke_result_t<Body> with_log(Deadline deadline, Body body) {
    std::unique_lock lock(mutex_);
    std::chrono::microseconds nap = 20us;
    while (true) {
      {
        const posix::ByteLock log(log_.file(), kLogLock);
        if (log.is_held()) {
          refused_since_.reset();
          return body();
        }
      }
      const auto now = Clock::now();
      if (!refused_since_) refused_since_ = now;
      deadline = renewed(deadline, patience_);
      if (now >= deadline) throw kept(deadline - *refused_since_);
      lock.unlock();  // other threads may call failure() meanwhile
      std::this_thread::sleep_until(std::min<Deadline>(deadline, now + nap));
      nap = std::min<std::chrono::microseconds>(nap * 2, kLongestNapForTheLog);
      lock.lock();
    }
  }

  // As with_log(), after reading new records and handling the queue.
  template <typename Body>
  std::invoke_result_t<Body> write(Deadline deadline, Body body) {
    return with_log(deadline, [&] {
      read_news();
      do_all();
      return body();
    });
  }

  Error kept(Clock::duration waited) const {
    const std::chrono::duration<double> seconds = waited;
    return {ErrorCode::kDeadline, kNoPeer,
            fmt::format("waited {:.1f} s for the lock of {}: a rank that hangs, or was stopped "
                        "while it wrote, may hold it (fuser {} lists the processes that have the "
                        "file open), or the file system does not answer; end or continue that "
                        "process, or name another file in KOLO_STORE",
                        seconds.count(), describe(), path_)};
  }

  void put_off(Record record) {
    const std::lock_guard lock(mutex_);
    put_off_.push_back({std::move(record), nullptr});
    catch_up();
  }

  // Handles as much of the queue as possible without waiting.
  void catch_up() {
    if (put_off_.empty() && !unwritten_failure_) return;
    read_news();
    while (!put_off_.empty() && put_off_.front().answer != nullptr) do_next();
    if (put_off_.empty() && !unwritten_failure_) return;
    const posix::ByteLock log(log_.file(), kLogLock);
    if (!log.is_held()) return;
    read_news();
    do_all();
  }

  // Needs the log's lock.
  void do_all() {
    if (unwritten_failure_) fail_in_file(*unwritten_failure_);
    unwritten_failure_.reset();
    while (!put_off_.empty()) do_next();
  }

  // A query needs the latest records only; a record to write needs the log's lock as well.
  void do_next() {
    const PutOff next = std::move(put_off_.front());
    put_off_.pop_front();
    if (next.answer == nullptr) return append(next.record);
    const std::string* const found = tables_.find(next.record.key);
    if (found != nullptr) next.answer->value = *found;
    next.answer->has_come = true;
  }

  bool is_joined() {
    const std::lock_guard lock(mutex_);
    return !own_.empty();
  }

  // False if the file was removed between opening and locking it: call again.
  bool open_and_enter(Deadline deadline, const PastJobs* past) {
    log_.open();
    return with_log(deadline, [&] { return enter(past); });
  }

  bool enter(const PastJobs* past) {
    if (log_.is_replaced()) return false;
    log_.require_log();
    if (!posix::is_locked_by_others(log_.file(), kUserLock)) log_.start_afresh();
    read_news();
    const bool is_past =
        past != nullptr && log_.failure() && (past->has(log_.id()) || members_.have_met());
    if (is_past) {
      log_.remove();
      log_ = FileLog(path_);
      return false;
    }
    if (!posix::lock_byte_shared(log_.file(), kUserLock))
      posix::throw_system("cannot lock " + path_);
    return true;
  }

  static void require_short(std::string_view key, std::string_view value) {
    if (key.size() <= kLongest && value.size() <= kLongest) return;
    constexpr std::size_t kShown = 100;
    throw std::invalid_argument(fmt::format(
        "store: the {} of '{}' has {} bytes, {} at most", key.size() > kLongest ? "name" : "value",
        key.substr(0, kShown), std::max(key.size(), value.size()), kLongest));
  }

  // Needs the log's lock, and all records read.
  void append(const Record& record) {
    log_.append(record);
    read_news();
    if (log_.bytes() < longest_log_) return;
    longest_log_ = std::max(kShortLog, 4 * tables_.bytes());
    if (log_.bytes() < longest_log_) return;
    try {
      log_.replace(all_records());
    } catch (const Error&) {  // the disk is full: the log stays as it is
    }
    read_news();
  }

  // The job's first failure wins. Needs the log's lock.
  void fail_in_file(std::string_view text) {
    read_news();
    if (log_.failure()) return;
    log_.write_failure(text);
    read_news();
  }

  void read_news() {
    log_.read(
        [this] {
          tables_ = {};
          members_ = {};
        },
        [this](Record record) { apply(std::move(record)); });
  }

  void apply(Record record) {
    const int rank = rank_of(record.number);
    switch (record.kind) {
      case Kind::kValue:
        tables_.set(record.key, std::move(record.value));
        return;
      case Kind::kCounter:
        tables_.set_counter(record.key, record.number);
        return;
      case Kind::kRetire:
        tables_.retire(record.key, record.number);
        return;
      case Kind::kJoin:
        members_.join(
            {rank, std::move(record.key), size_of(record.number), std::move(record.value)});
        return;
      case Kind::kLeave:
        members_.leave(record.key, rank);
        return;
    }
  }

  // What a rewritten log holds.
  std::vector<Record> all_records() const {
    std::vector<Record> records;
    for (const auto& [key, value] : tables_.values())
      records.push_back({Kind::kValue, key, value, 0});
    for (const auto& [key, number] : tables_.counters())
      records.push_back({Kind::kCounter, key, {}, number});
    for (const auto& [prefix, retired] : tables_.retired()) {
      for (std::int64_t i = 0; i < retired.calls; ++i)
        records.push_back({Kind::kRetire, prefix, {}, retired.users});
    }
    for (const Members::Event& event : members_.history()) {
      const Membership& of = event.of;
      records.push_back(event.is_join
                            ? Record{Kind::kJoin, of.communicator, of.who, pack(of.rank, of.size)}
                            : Record{Kind::kLeave, of.communicator, {}, of.rank});
    }
    return records;
  }

  bool is_own(int rank) const {
    return std::ranges::any_of(own_, [rank](const Membership& own) { return own.rank == rank; });
  }

  std::optional<std::string> find_a_death() {
    if (Clock::now() - looked_for_the_dead_ < kLookForTheDeadEvery) return std::nullopt;
    looked_for_the_dead_ = Clock::now();
    std::optional<std::string> death;
    const auto look = [&](int rank, const std::string& who) {
      if (is_own(rank) || posix::is_locked_by_others(log_.file(), kRankLock + rank)) return;
      death = fmt::format(
          "rank {} ({}) is gone: it closed {} without a goodbye; look at its last output", rank,
          who, describe());
    };
    members_.visit(look);
    if (!death) return std::nullopt;
    death.reset();
    read_news();  // the rank may have left since
    members_.visit(look);
    return death;
  }

  const std::string path_;
  const Clock::duration patience_;
  const pid_t process_ = ::getpid();

  mutable std::mutex mutex_;  // guards all members below
  FileLog log_;
  std::size_t longest_log_ = kShortLog;  // a longer one is looked at
  StoreTables tables_;
  Members members_;
  std::vector<Membership> own_;                   // joined and not left
  std::optional<std::string> refusal_;            // of this process, a newcomer
  std::optional<std::string> unwritten_failure_;  // of this process, queued for the log
  Clock::time_point looked_for_the_dead_{};
  std::deque<PutOff> put_off_;
  std::optional<Clock::time_point> refused_since_;  // start of the current refusals of the lock
};

}  // namespace

std::shared_ptr<Store> open_file_store(const std::string& path, int size, Deadline deadline,
                                       const PastJobs* past) {
  check(size >= 1, "open_file_store: a job has at least one rank");
  check(!path.empty(), "open_file_store: the file needs a name");
  return std::make_shared<FileStore>(path, deadline, past);
}

}  // namespace kolo::inline v0
