// Store in a file that all ranks can open: a log of records. Ranks append under a lock and read
// without one.
//
//     file    = header record*            header = "kolo store 2\n"
//     record  = u32 kind, u32 length of the key, u32 length of the value, i64 number, key, value
//     (little-endian)
//
// Three kinds of lock bytes lie beyond the end of any log (posix/byte_lock.h):
//
//     kLogLock            Exclusive, held for microseconds while appending. A process stopped at
//                         that moment keeps it; waiters sleep and retry up to a deadline.
//     kUserLock           Shared, held while a store is open. A process that can take it
//                         exclusively is the only user: on opening it truncates the log, which is
//                         left from a job that ended badly; on closing it removes the file.
//     kRankLock + rank    Exclusive, held by that rank after join(). If another process can take
//                         it, the rank is dead.
//
// note(), ask() and the failures found by failure() never wait for the log's lock. If it is taken,
// they are queued; the next call that gets the lock handles the queue in order.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <thread>
#include <type_traits>
#include <vector>

#include "transports/base/check.h"
#include "transports/error.h"
#include "transports/posix/byte_lock.h"
#include "transports/posix/descriptor.h"
#include "transports/posix/host/identity.h"
#include "transports/rendezvous.h"
#include "transports/store/members.h"
#include "transports/store/timeouts.h"
#include "transports/store/wrapping_add.h"

namespace kolo {

namespace {

using namespace std::chrono_literals;

constexpr std::string_view kHeader = "kolo store 2\n";
constexpr off_t kLogLock = off_t{1} << 40;
constexpr off_t kUserLock = kLogLock + 1;
constexpr off_t kRankLock = kLogLock + 2;
constexpr std::size_t kRecordBytes = 20;
constexpr std::uint32_t kLongest = Store::kLongestValue;
constexpr auto kLongestNap = 20ms;
constexpr auto kLongestNapForTheLog = 2ms;
constexpr auto kLookForTheDeadEvery = 200ms;

enum class Kind : std::uint32_t { kValue = 1, kCounter, kJoin, kLeave, kFail };

class FileStore final : public Store {
 public:
  FileStore(std::string path, Deadline deadline)
      : path_(std::move(path)), patience_(patience_of(Clock::now(), deadline)) {
    while (!open_and_enter(deadline)) {
    }
  }

  // A forked child changes nothing: it shares its locks with its parent.
  ~FileStore() override {
    if (::getpid() != process_) return;
    try {
      // The log's lock orders processes that close at once: the last one removes the file.
      with_log(last_patience(), [this] {
        posix::unlock_byte(file_, kUserLock);
        if (!posix::is_locked_by_others(file_, kUserLock)) ::unlink(path_.c_str());
      });
    } catch (const std::exception&) {  // the file stays; the next job finds it unused
    }
  }

  void set(std::string_view key, std::string_view value) override {
    require_short(key, value);
    write(patience(), [&] { write_record(Kind::kValue, key, value, 0); });
  }

  void note(std::string_view key, std::string_view value) override {
    require_short(key, value);
    const std::lock_guard lock(mutex_);
    put_off_.push_back({Kind::kValue, std::string(key), std::string(value), nullptr});
    catch_up();
  }

  std::shared_ptr<const Answer> ask(std::string_view key) override {
    const std::lock_guard lock(mutex_);
    const auto answer = std::make_shared<Answer>();
    put_off_.push_back({Kind::kValue, std::string(key), {}, answer});
    catch_up();
    return answer;
  }

  std::optional<std::string> try_get(std::string_view key) override {
    const std::lock_guard lock(mutex_);
    read_news();
    const auto found = values_.find(key);
    return found == values_.end() ? std::nullopt : std::optional(found->second);
  }

  std::string get(std::string_view key, Deadline deadline) override {
    const auto start = Clock::now();
    std::chrono::microseconds nap = 100us;
    while (true) {
      if (auto value = try_get(key)) return *value;
      if (const auto text = failure()) throw Error(ErrorCode::kAborted, kNoPeer, *text);
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
      const std::int64_t sum = wrapping_add(counters_[std::string(key)], delta);
      write_record(Kind::kCounter, key, {}, sum);
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
        if (!failure_) write_record(Kind::kFail, {}, answer.text, 0);
        return;
      }
      posix::lock_byte(file_, kRankLock + rank);
      write_record(Kind::kJoin, communicator, wanted.who, pack(rank, size));
      own_.push_back(wanted);
    });
  }

  void leave() override {
    if (!is_joined()) return;
    write(last_patience(), [&] {
      if (own_.empty()) return;  // another thread has left meanwhile
      const Membership left = std::move(own_.back());
      own_.pop_back();
      write_record(Kind::kLeave, left.communicator, {}, left.rank);
      // This was the rank's last join() here, so other ranks stop watching it.
      if (!is_own(left.rank)) posix::unlock_byte(file_, kRankLock + left.rank);
    });
  }

  std::optional<std::string> failure() override {
    const std::lock_guard lock(mutex_);
    catch_up();
    if (refusal_) return refusal_;
    read_news();
    if (failure_) return failure_;
    if (unwritten_failure_) return unwritten_failure_;
    if (const auto death = find_a_death()) {
      put_off_.push_back({Kind::kFail, {}, *death, nullptr});
      catch_up();
      if (!failure_) put_off_.pop_back();  // the log was taken; the next call finds it again
    }
    return failure_;
  }

  std::string post_failure(std::string_view text) override {
    const std::string said(text.substr(0, kLongest));
    try {
      return write(last_patience(), [&] {
        if (refusal_) return *refusal_;
        if (!failure_) write_record(Kind::kFail, {}, said, 0);
        return *failure_;
      });
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kDeadline) throw;
    }
    // The record is queued for the other ranks. On this rank it is the failure from now on.
    const std::lock_guard lock(mutex_);
    put_off_.push_back({Kind::kFail, {}, said, nullptr});
    unwritten_failure_ = said;
    return failure_.value_or(said);
  }

  std::string describe() const override { return "the store in the file " + path_; }

 private:
  // An operation queued until the log is free.
  struct PutOff {
    Kind kind;
    std::string key;
    std::string value;
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
        const posix::ByteLock log(file_, kLogLock);
        if (log.is_held()) {
          refused_since_.reset();
          return body();
        }
      }
      const auto now = Clock::now();
      if (!refused_since_) refused_since_ = now;
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
      while (!put_off_.empty()) do_next();
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

  // Handles as much of the queue as possible without waiting.
  void catch_up() {
    if (put_off_.empty()) return;
    read_news();
    while (!put_off_.empty() && put_off_.front().answer != nullptr) do_next();
    if (put_off_.empty()) return;
    const posix::ByteLock log(file_, kLogLock);
    if (!log.is_held()) return;
    read_news();
    while (!put_off_.empty()) do_next();
  }

  // A query needs the latest records only; a record to write needs the log's lock as well.
  void do_next() {
    const PutOff next = std::move(put_off_.front());
    put_off_.pop_front();
    if (next.answer != nullptr) {
      const auto found = values_.find(next.key);
      if (found != values_.end()) next.answer->value = found->second;
      next.answer->has_come = true;
    } else if (next.kind != Kind::kFail || !failure_) {
      write_record(next.kind, next.key, next.value, 0);
    }
  }

  bool is_joined() {
    const std::lock_guard lock(mutex_);
    return !own_.empty();
  }

  // False if the file was removed between opening and locking it: call again.
  bool open_and_enter(Deadline deadline) {
    file_ = posix::Descriptor(::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    if (!file_.is_open()) {
      throw Error(
          ErrorCode::kUnavailable, kNoPeer,
          fmt::format("cannot open the store's file {}: {}; name one that does not exist, in a "
                      "folder that all ranks can write to",
                      path_, posix::error_text(errno)));
    }
    struct stat status {};
    if (::fstat(file_.get(), &status) != 0) posix::throw_system("fstat " + path_);
    if (!S_ISREG(status.st_mode)) {
      throw Error(ErrorCode::kUnavailable, kNoPeer,
                  fmt::format("{} is a pipe or a device, which cannot be a store: name a file that "
                              "does not exist, in a folder that all ranks can write to",
                              path_));
    }
    return with_log(deadline, [this] { return enter(); });
  }

  bool enter() {
    struct stat status {};
    if (::fstat(file_.get(), &status) != 0) posix::throw_system("fstat " + path_);
    if (status.st_nlink == 0) return false;
    const bool is_ours = status.st_size == 0 || has_header();
    if (!is_ours) {
      throw Error(ErrorCode::kUnavailable, kNoPeer,
                  fmt::format("{} is not a store of kolo: name a file that does not exist", path_));
    }
    if (!posix::is_locked_by_others(file_, kUserLock)) start_afresh();
    if (!posix::lock_byte_shared(file_, kUserLock)) posix::throw_system("cannot lock " + path_);
    end_ = kHeader.size();
    return true;
  }

  bool has_header() {
    std::string start(kHeader.size(), '\0');
    return ::pread(file_.get(), start.data(), start.size(), 0) ==
               static_cast<ssize_t>(start.size()) &&
           start == kHeader;
  }

  // This process is the only user. Removes the file if it cannot be written.
  void start_afresh() {
    try {
      if (::ftruncate(file_.get(), 0) != 0) posix::throw_system("ftruncate " + path_);
      write_bytes(kHeader, 0);
    } catch (const Error&) {
      ::unlink(path_.c_str());
      throw;
    }
  }

  static void require_short(std::string_view key, std::string_view value) {
    if (key.size() <= kLongest && value.size() <= kLongest) return;
    constexpr std::size_t kShown = 100;
    throw std::invalid_argument(fmt::format(
        "store: the {} of '{}' has {} bytes, {} at most", key.size() > kLongest ? "name" : "value",
        key.substr(0, kShown), std::max(key.size(), value.size()), kLongest));
  }

  // Requires the log's lock and all records read, so that end_ is the end of the log.
  void write_record(Kind kind, std::string_view key, std::string_view value, std::int64_t number) {
    std::string bytes(kRecordBytes, '\0');
    const auto put = [&bytes](std::size_t at, auto field) {
      std::memcpy(bytes.data() + at, &field, sizeof field);
    };
    put(0, static_cast<std::uint32_t>(kind));
    put(4, static_cast<std::uint32_t>(key.size()));
    put(8, static_cast<std::uint32_t>(value.size()));
    put(12, number);
    bytes.append(key).append(value);
    // Bytes beyond end_ are an incomplete record of a rank that died while writing.
    if (::ftruncate(file_.get(), static_cast<off_t>(end_)) != 0)
      posix::throw_system("ftruncate " + path_);
    write_bytes(bytes, end_);
    read_news();
  }

  void write_bytes(std::string_view bytes, std::size_t at) {
    while (!bytes.empty()) {
      const ssize_t written =
          ::pwrite(file_.get(), bytes.data(), bytes.size(), static_cast<off_t>(at));
      if (written < 0 && errno != EINTR) posix::throw_system("cannot write " + path_);
      if (written <= 0) continue;
      bytes.remove_prefix(static_cast<std::size_t>(written));
      at += static_cast<std::size_t>(written);
    }
  }

  // Applies newly appended records, up to the first incomplete one.
  void read_news() {
    struct stat status {};
    if (::fstat(file_.get(), &status) != 0) posix::throw_system("fstat " + path_);
    const auto file_bytes = static_cast<std::size_t>(status.st_size);
    if (file_bytes <= end_) return;
    std::string bytes(file_bytes - end_, '\0');
    const ssize_t got = ::pread(file_.get(), bytes.data(), bytes.size(), static_cast<off_t>(end_));
    if (got < 0) posix::throw_system("cannot read " + path_);
    bytes.resize(static_cast<std::size_t>(got));
    std::size_t at = 0;
    while (const std::size_t length = apply_record(std::string_view(bytes).substr(at)))
      at += length;
    end_ += at;
  }

  // Returns the length of the record at the front, or 0 if it is incomplete.
  std::size_t apply_record(std::string_view bytes) {
    if (bytes.size() < kRecordBytes) return 0;
    const auto field = [&bytes](std::size_t at) {
      std::uint32_t value = 0;
      std::memcpy(&value, bytes.data() + at, sizeof value);
      return value;
    };
    const std::uint32_t key_bytes = field(4);
    const std::uint32_t value_bytes = field(8);
    if (field(0) < 1 || field(0) > 5 || key_bytes > kLongest || value_bytes > kLongest) {
      throw Error(ErrorCode::kProtocol, kNoPeer,
                  fmt::format("{} is damaged: remove it and start the job again", describe()));
    }
    const std::size_t length = kRecordBytes + key_bytes + value_bytes;
    if (bytes.size() < length) return 0;
    std::int64_t number = 0;
    std::memcpy(&number, bytes.data() + 12, sizeof number);
    apply(static_cast<Kind>(field(0)), std::string(bytes.substr(kRecordBytes, key_bytes)),
          std::string(bytes.substr(kRecordBytes + key_bytes, value_bytes)), number);
    return length;
  }

  void apply(Kind kind, std::string key, std::string value, std::int64_t number) {
    const int rank = static_cast<int>(number & 0x7fff'ffff);
    switch (kind) {
      case Kind::kValue:
        values_.insert_or_assign(std::move(key), std::move(value));
        return;
      case Kind::kCounter:
        counters_[key] = number;
        return;
      case Kind::kJoin:
        members_.join({rank, std::move(key), static_cast<int>(number >> 32), std::move(value)});
        return;
      case Kind::kLeave:
        members_.leave(key, rank);
        return;
      case Kind::kFail:
        if (!failure_) failure_ = std::move(value);
        return;
    }
  }

  // The rank and the size of its communicator, in one number.
  static std::int64_t pack(int rank, int size) { return std::int64_t{size} << 32 | rank; }

  bool is_own(int rank) const {
    return std::ranges::any_of(own_, [rank](const Membership& own) { return own.rank == rank; });
  }

  std::optional<std::string> find_a_death() {
    if (Clock::now() - looked_for_the_dead_ < kLookForTheDeadEvery) return std::nullopt;
    looked_for_the_dead_ = Clock::now();
    std::optional<std::string> death;
    const auto look = [&](int rank, const std::string& who) {
      if (is_own(rank) || posix::is_locked_by_others(file_, kRankLock + rank)) return;
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
  posix::Descriptor file_;

  std::mutex mutex_;     // guards all members below
  std::size_t end_ = 0;  // of the records read so far
  std::map<std::string, std::string, std::less<>> values_;
  std::map<std::string, std::int64_t> counters_;
  Members members_;
  std::vector<Membership> own_;  // joined and not left
  std::optional<std::string> failure_;
  std::optional<std::string> refusal_;            // of this process, a newcomer
  std::optional<std::string> unwritten_failure_;  // of this process, queued for the log
  Clock::time_point looked_for_the_dead_{};
  std::deque<PutOff> put_off_;
  std::optional<Clock::time_point> refused_since_;  // start of the current refusals of the lock
};

}  // namespace

std::shared_ptr<Store> open_file_store(const std::string& path, int size, Deadline deadline) {
  check(size >= 1, "open_file_store: a job has at least one rank");
  check(!path.empty(), "open_file_store: the file needs a name");
  return std::make_shared<FileStore>(path, deadline);
}

}  // namespace kolo
