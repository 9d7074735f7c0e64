#include "transports/decorators/trace.h"

#include <fmt/format.h>
#include <optional>
#include <utility>

#include "transports/base/check.h"
#include "transports/decorators/forwarding.h"
#include "transports/decorators/trace_file.h"
#include "transports/error.h"

namespace kolo::inline v0 {

namespace {

using decorators::TraceEvent;
using decorators::TraceKind;
using decorators::TraceLog;

// Current segment in one direction of a channel.
class Track {
 public:
  Track(TraceLog& log, int peer, TraceKind kind) : log_(log), peer_(peer), kind_(kind) {}

  void asked() {
    if (!asked_) asked_ = Clock::now();
  }

  void there(std::size_t bytes) {
    if (there_) return;
    there_ = Clock::now();
    bytes_ = bytes;
  }

  void done() {
    if (asked_ && there_) log_.add({*asked_, *there_, Clock::now(), bytes_, peer_, kind_});
    asked_.reset();
    there_.reset();
  }

 private:
  TraceLog& log_;
  const int peer_;
  const TraceKind kind_;
  std::optional<Clock::time_point> asked_;
  std::optional<Clock::time_point> there_;
  std::uint64_t bytes_ = 0;
};

class TracedChannel : public decorators::ForwardingChannel {
 public:
  TracedChannel(Channel& inner, TraceLog& log)
      : ForwardingChannel(inner),
        out_(log, peer(), TraceKind::kSend),
        in_(log, peer(), TraceKind::kReceive),
        answers_(log, peer(), TraceKind::kAnswer) {}

  std::byte* reserve(std::size_t bytes) override {
    out_.asked();
    std::byte* slot = inner().reserve(bytes);
    if (slot != nullptr) out_.there(bytes);
    return slot;
  }

  void commit(unsigned flags) override {
    inner().commit(flags);
    out_.done();
  }

  bool send(std::span<const std::byte> data, unsigned flags) override {
    out_.asked();
    if (!inner().send(data, flags)) return false;
    out_.there(data.size());
    out_.done();
    return true;
  }

  const std::byte* view(std::size_t bytes) override {
    in_.asked();
    const std::byte* segment = inner().view(bytes);
    if (segment != nullptr) in_.there(bytes);
    return segment;
  }

  // A preposted segment is traced when it is requested.
  static bool may_expect() { return true; }

  void release() override {
    inner().release();
    in_.done();
  }

  bool receive(std::span<std::byte> into, unsigned flags) override {
    in_.asked();
    if (!inner().receive(into, flags)) return false;
    in_.there(into.size());
    in_.done();
    return true;
  }

  std::byte* view_to_answer(std::size_t bytes) override {
    in_.asked();
    std::byte* segment = inner().view_to_answer(bytes);
    if (segment != nullptr) in_.there(bytes);
    return segment;
  }

  void answer() override {
    inner().answer();
    in_.done();
  }

  const std::byte* view_answer(std::size_t bytes) override {
    answers_.asked();
    const std::byte* segment = inner().view_answer(bytes);
    if (segment != nullptr) answers_.there(bytes);
    return segment;
  }

  void release_answer() override {
    inner().release_answer();
    answers_.done();
  }

 private:
  Track out_;
  Track in_;
  Track answers_;
};

class TracedTransport final : public decorators::ForwardingTransport<TracedChannel> {
 public:
  TracedTransport(std::unique_ptr<Transport> inner, std::string path, Log log)
      : ForwardingTransport(std::move(inner)), path_(std::move(path)), errors_(std::move(log)) {
    log_.transport = std::string(name());
    log_.rank = rank();
    add_channels(log_);
  }

  // Logs errors, as a destructor cannot throw.
  ~TracedTransport() override {
    const std::string wrong = write();
    if (!wrong.empty()) write_line(errors_, "KOLO_TRACE: " + wrong);
  }

  // Writes the file at the first call only. Returns the error text, or an empty one.
  std::string write() noexcept {
    return std::exchange(is_written_, true) ? "" : decorators::write_trace(log_, path_);
  }

 private:
  bool is_written_ = false;
  const std::string path_;
  const Log errors_;
  TraceLog log_;
};

}  // namespace

std::unique_ptr<Transport> make_traced(std::unique_ptr<Transport> inner, const std::string& path,
                                       Log log) {
  check(inner != nullptr, "make_traced: there must be a transport");
  const std::string wrong = decorators::why_not_writable(path);
  if (!wrong.empty()) {
    throw Error(
        ErrorCode::kUnavailable, kNoPeer,
        fmt::format("rank {}: KOLO_TRACE='{}' cannot be written: {}", inner->rank(), path, wrong));
  }
  return std::make_unique<TracedTransport>(std::move(inner), path, std::move(log));
}

void write_trace_of(Transport& transport) {
  auto* traced = dynamic_cast<TracedTransport*>(&transport);
  const std::string wrong = traced == nullptr ? "" : traced->write();
  if (wrong.empty()) return;
  throw Error(ErrorCode::kSystem, kNoPeer,
              fmt::format("rank {}: KOLO_TRACE: {}", transport.rank(), wrong));
}

}  // namespace kolo::inline v0
