#include "transports/decorators/fault.h"

#include <fmt/format.h>
#include <unistd.h>
#include <algorithm>
#include <csignal>
#include <cstring>
#include <stdexcept>
#include <thread>
#include <utility>

#include "transports/base/check.h"
#include "transports/decorators/forwarding.h"
#include "transports/decorators/splitmix64.h"
#include "transports/error.h"

namespace kolo::inline v0 {

namespace {

// A fault of this rank, and the number of segments moved so far.
struct Due {
  Fault fault;
  std::uint64_t moved = 0;
  bool is_done = false;

  bool is_next() const { return !is_done && moved + 1 == fault.segment; }
};

// State shared by the channels of one rank.
struct Faults {
  int rank = 0;
  std::vector<Due> due;  // without storms
  std::vector<Fault> storms;
  bool is_quiesced = false;
  bool has_refused = false;  // a storm has said "not now": arm() must not let this rank sleep
};

// Remaining refusals of a storm for one kind of call and its next segment.
class Squall {
 public:
  Squall(const Fault& storm, int rank, int peer, std::uint64_t salt)
      : times_(storm.times), seed_(storm.seed + salt), rank_(rank), peer_(peer) {
    next_segment();
  }

  bool refuses() {
    if (left_ == 0) return false;
    --left_;
    return true;
  }

  void next_segment() { left_ = decorators::mixed(seed_, rank_, peer_, number_++) % (times_ + 1); }

 private:
  std::uint64_t times_;
  std::uint64_t seed_;
  int rank_;
  int peer_;
  std::uint64_t number_ = 0;
  std::uint64_t left_ = 0;
};

class FaultyChannel : public decorators::ForwardingChannel {
 public:
  FaultyChannel(Channel& inner, Faults& faults)
      : ForwardingChannel(inner),
        faults_(faults),
        out_(storm(&Fault::is_out), faults.rank, peer(), 0x6f7574),
        drained_(storm(&Fault::is_out), faults.rank, peer(), 0x647261),
        in_(storm(&Fault::is_in), faults.rank, peer(), 0x696e),
        expected_(storm(&Fault::is_in), faults.rank, peer(), 0x657870),
        answers_(storm(&Fault::is_in), faults.rank, peer(), 0x616e73) {}

  std::byte* reserve(std::size_t bytes) override {
    if (strike(true) && refuse(out_)) return nullptr;
    slot_ = inner().reserve(bytes);
    reserved_bytes_ = bytes;
    return slot_;
  }

  void commit(unsigned flags) override {
    if (slot_ != nullptr && !faults_.is_quiesced && is_corrupt() && reserved_bytes_ > 0)
      slot_[reserved_bytes_ / 2] ^= std::byte{1};
    inner().commit(flags);
    slot_ = nullptr;
    sent();
  }

  bool send(std::span<const std::byte> data, unsigned flags) override {
    if (strike(true) && refuse(out_)) return false;
    if (is_corrupt()) return send_copy(data, flags);
    if (!inner().send(data, flags)) return false;
    sent();
    return true;
  }

  bool is_drained() override {
    fail_if_lost();
    return !refuse(drained_) && inner().is_drained();
  }

  const std::byte* view(std::size_t bytes) override {
    if (!is_viewing_ && strike(false) && refuse(in_)) return nullptr;
    const std::byte* segment = inner().view(bytes);
    is_viewing_ = segment != nullptr;
    return segment;
  }

  void release() override {
    inner().release();
    received();
  }

  bool receive(std::span<std::byte> into, unsigned flags) override {
    if (strike(false) && refuse(in_)) return false;
    if (!inner().receive(into, flags)) return false;
    received();
    return true;
  }

  bool may_expect() {
    fail_if_lost();
    return !refuse(expected_);
  }

  std::byte* view_to_answer(std::size_t bytes) override {
    if (!is_viewing_ && strike(false) && refuse(in_)) return nullptr;
    std::byte* segment = inner().view_to_answer(bytes);
    is_viewing_ = segment != nullptr;
    return segment;
  }

  void answer() override {
    inner().answer();
    received();
  }

  const std::byte* view_answer(std::size_t bytes) override {
    fail_if_lost();
    return refuse(answers_) ? nullptr : inner().view_answer(bytes);
  }

  void release_answer() override {
    inner().release_answer();
    answers_.next_segment();
  }

 private:
  // The storm for this channel and these calls; the last one if there are several.
  Fault storm(bool Fault::*is_for) const {
    Fault none;
    for (const Fault& one : faults_.storms) {
      if (one.*is_for && is_for_peer(one)) none = one;
    }
    return none;
  }

  bool is_for_peer(const Fault& fault) const { return fault.peer < 0 || fault.peer == peer(); }

  bool refuse(Squall& squall) {
    if (faults_.is_quiesced || !squall.refuses()) return false;
    faults_.has_refused = true;
    return true;
  }

  // Executes the faults that are due. Always returns true.
  bool strike(bool is_sending) {
    fail_if_lost();
    if (faults_.is_quiesced) return true;
    for (Due& due : faults_.due) {
      const bool is_here = is_for_peer(due.fault) && due.fault.kind != FaultKind::kCorrupt;
      if (!is_here || !due.is_next()) continue;
      due.is_done = true;
      happen(due.fault, is_sending);
    }
    return true;
  }

  void happen(const Fault& fault, bool is_sending) {
    if (fault.kind == FaultKind::kDie) ::kill(::getpid(), SIGKILL);
    if (fault.kind == FaultKind::kStall) std::this_thread::sleep_for(fault.time);
    if (fault.kind != FaultKind::kLose) return;
    lost_ =
        fmt::format("rank {}: cannot {} rank {}: lost at segment {}, as KOLO_FAULT asks",
                    faults_.rank, is_sending ? "send to" : "receive from", peer(), fault.segment);
    fail_if_lost();
  }

  void fail_if_lost() const {
    if (!lost_.empty() && !faults_.is_quiesced) throw Error(ErrorCode::kPeerLost, peer(), lost_);
  }

  bool is_corrupt() const {
    return std::ranges::any_of(faults_.due, [this](const Due& due) {
      return due.fault.kind == FaultKind::kCorrupt && is_for_peer(due.fault) && due.is_next();
    });
  }

  void sent() {
    out_.next_segment();
    drained_.next_segment();
    count(true);
  }

  void received() {
    is_viewing_ = false;
    in_.next_segment();
    expected_.next_segment();
    count(false);
  }

  void count(bool is_sent) {
    for (Due& due : faults_.due) {
      const bool counts = is_sent || due.fault.kind != FaultKind::kCorrupt;
      if (counts && is_for_peer(due.fault)) ++due.moved;
    }
  }

  Faults& faults_;
  Squall out_;
  Squall drained_;
  Squall in_;
  Squall expected_;
  Squall answers_;
  std::string lost_;
  std::byte* slot_ = nullptr;
  std::size_t reserved_bytes_ = 0;
  bool is_viewing_ = false;
};

class FaultyTransport final : public decorators::ForwardingTransport<FaultyChannel> {
 public:
  FaultyTransport(std::unique_ptr<Transport> inner, const FaultPlan& plan)
      : ForwardingTransport(std::move(inner)),
        name_(fmt::format("{},{}", ForwardingTransport::name(), plan.text)) {
    faults_.rank = rank();
    for (const Fault& fault : plan.faults) {
      if (fault.rank >= 0 && fault.rank != rank()) continue;
      if (fault.kind == FaultKind::kStorm) {
        faults_.storms.push_back(fault);
      } else {
        faults_.due.push_back({fault});
      }
    }
    add_channels(faults_);
  }

  std::string_view name() const override { return name_; }

  bool arm() override {
    if (std::exchange(faults_.has_refused, false)) return false;
    return ForwardingTransport::arm();
  }

  void quiesce() noexcept override {
    faults_.is_quiesced = true;
    ForwardingTransport::quiesce();
  }

 private:
  const std::string name_;
  Faults faults_;
};

}  // namespace

std::unique_ptr<Transport> make_faulty(std::unique_ptr<Transport> inner, const FaultPlan& plan) {
  check(inner != nullptr, "make_faulty: there must be a transport");
  for (const Fault& fault : plan.faults) {
    const int highest = std::max(fault.rank, fault.peer);
    if (highest >= inner->size()) {
      throw std::invalid_argument(
          fmt::format("there is no rank {}: this job has {}", highest, inner->size()));
    }
    if (fault.rank >= 0 && fault.rank == fault.peer) {
      throw std::invalid_argument(
          fmt::format("rank {} cannot be its own peer: name two ranks as rank and peer of a fault",
                      fault.rank));
    }
  }
  return std::make_unique<FaultyTransport>(std::move(inner), plan);
}

}  // namespace kolo::inline v0
