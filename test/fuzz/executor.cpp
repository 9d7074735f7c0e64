// Fuzzer of the executor: a rank runs collectives while its peers send any headers and any
// segments. An operation must end, or fail with an error that says whether the peer's call or its
// data was wrong. Fake channels keep each segment in an allocation of its own length, so a
// sanitizer finds any access beyond it. A segment of another length than expected is a protocol
// error, as over sockets.
#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <numeric>
#include <optional>
#include <vector>

#include "collectives/algorithms/algorithm_table.h"
#include "collectives/executor/executor.h"
#include "test/fuzz/input.h"
#include "transports/base/aligned_memory.h"

using namespace kolo;
using namespace kolo::fuzz;

namespace {

constexpr std::size_t kMostBytes = 4096;
constexpr std::size_t kCredit = 4;

struct Segment {
  explicit Segment(std::size_t length) : bytes(length), memory(allocate_aligned(length)) {
    if (length > 0) std::memset(memory.get(), 0, length);
  }
  std::byte* data() const { return memory.get(); }

  std::size_t bytes;
  AlignedMemory memory;
};

class PlayedChannel final : public Channel {
 public:
  PlayedChannel(int peer, bool can_answer, bool copies) : peer_(peer) {
    capabilities_.segment_bytes = kMostBytes;
    capabilities_.can_answer = can_answer;
    if (!copies) capabilities_.zero_copy_bytes = 1;
  }

  int peer() const override { return peer_; }
  const Capabilities& capabilities() const override { return capabilities_; }
  const ChannelStatistics& statistics() const override { return statistics_; }

  std::byte* reserve(std::size_t bytes) override {
    require(bytes <= kMostBytes && !reserved_, "a slot is asked for when it may be");
    if (under_way_ + asked_.size() >= kCredit) return fail_if_gone(), nullptr;
    reserved_.emplace(bytes);
    return reserved_->data();
  }
  void commit(unsigned flags) override {
    require(reserved_.has_value(), "what is handed over was reserved");
    if ((flags & kAnswered) == 0) {
      ++under_way_;
    } else {
      require(capabilities_.can_answer, "only a channel that can answer is asked for an answer");
      asked_.push_back(std::move(*reserved_));
    }
    reserved_.reset();
  }
  bool send(std::span<const std::byte> data, unsigned flags) override {
    std::byte* const slot = reserve(data.size());
    if (slot == nullptr) return false;
    if (!data.empty()) std::memcpy(slot, data.data(), data.size());
    commit(flags);
    return true;
  }
  bool is_drained() override { return true; }

  const std::byte* view(std::size_t bytes) override { return view_to_answer(bytes); }
  std::byte* view_to_answer(std::size_t bytes) override {
    wanted_ = bytes;
    if (come_.empty()) return fail_if_gone(), nullptr;
    if (come_.front().bytes != bytes) {
      has_failed_ = true;
      throw Error(ErrorCode::kProtocol, peer_, "a segment of another length");
    }
    is_viewing_ = true;
    return come_.front().data();
  }
  void release() override {
    require(is_viewing_, "what is released was in view");
    is_viewing_ = false;
    if (!opening_) opening_ = opening();
    come_.pop_front();
  }
  void answer() override { release(); }
  bool receive(std::span<std::byte> into, unsigned) override {
    const std::byte* const data = view(into.size());
    if (data == nullptr) return false;
    if (!into.empty()) std::memcpy(into.data(), data, into.size());
    release();
    return true;
  }

  const std::byte* view_answer(std::size_t bytes) override {
    if (asked_.empty() || answered_ == 0) return fail_if_gone(), nullptr;
    require(asked_.front().bytes == bytes, "an answer is as long as what was sent");
    return asked_.front().data();
  }
  void release_answer() override {
    require(answered_ > 0, "what is released was answered");
    asked_.pop_front();
    --answered_;
  }

  // --- calls for the peer ---

  void bring(Segment segment) { come_.push_back(std::move(segment)); }
  void take_all() { under_way_ = 0; }
  void answer_one(std::uint8_t with) {
    if (answered_ == asked_.size()) return;
    const Segment& next = asked_[answered_++];
    if (next.bytes > 0) std::memset(next.data(), with, next.bytes);
  }
  void leave() { is_gone_ = true; }

  // The number of bytes in the latest request.
  std::size_t wanted() const { return wanted_; }
  // Whether the channel itself has reported an error.
  bool has_failed() const { return has_failed_; }
  // The header of the first unread segment.
  CallHeader opening() const {
    CallHeader header;
    header.magic = 0;
    if (!come_.empty() && come_.front().bytes == kHeaderSegmentBytes)
      std::memcpy(&header, come_.front().data(), sizeof header);
    return header;
  }
  // The header of the first segment read since the last call of this.
  std::optional<CallHeader> opened() { return std::exchange(opening_, std::nullopt); }

 private:
  void fail_if_gone() const {
    if (is_gone_) throw Error(ErrorCode::kPeerLost, peer_, "it has ended");
  }

  const int peer_;
  Capabilities capabilities_;
  ChannelStatistics statistics_;
  std::optional<Segment> reserved_;
  std::size_t under_way_ = 0;
  std::deque<Segment> asked_;
  std::size_t answered_ = 0;  // of asked_
  std::deque<Segment> come_;
  std::optional<CallHeader> opening_;
  std::size_t wanted_ = kHeaderSegmentBytes;
  bool is_viewing_ = false;
  bool has_failed_ = false;
  bool is_gone_ = false;
};

class Script {
 public:
  explicit Script(Input& input)
      : input_(input),
        algorithm_(algorithms()[input.below(static_cast<unsigned>(algorithms().size()))]),
        size_(2 + static_cast<int>(input.below(3))),
        rank_(static_cast<int>(
            input.below(algorithm_.collective == Collective::kMessage ? 2 : unsigned(size_)))),
        kind_(input.below(8)) {
    for (int peer = 0; peer < size_; ++peer) {
      played_.push_back(
          peer == rank_ ? nullptr
                        : std::make_unique<PlayedChannel>(peer, can_answer(), (kind_ & 2) == 0));
      channels_.push_back(played_.back().get());
    }
    const bool opens_alone = (kind_ & 4) != 0;
    executor_ = std::make_unique<Executor>(write(), channels_, SIZE_MAX, opens_alone);
    describe_call();
  }

  void play() {
    try {
      start();
      while (!input_.is_empty()) step();
      for (const auto& channel : played_) {
        if (channel) channel->leave();
      }
      if (executor_->advance()) return look_at_openings();
    } catch (const Error& error) {
      return look_at(error);
    }
    require(false, "an operation whose peers have ended ends");
  }

 private:
  bool can_answer() const { return (kind_ & 1) == 0; }

  Schedule write() const {
    PlanRequest request;
    request.ranks = {rank_, size_, 0, 1, can_answer(), {}};
    request.servers.rank = rank_;
    request.servers.size = size_;
    request.servers.can_answer = can_answer();
    request.servers.servers.resize(static_cast<std::size_t>(size_));
    std::iota(request.servers.servers.begin(), request.servers.servers.end(), 0);
    request.servers.servers_work = true;
    return algorithm_.write(request);
  }

  void describe_call() {
    constexpr std::size_t kCounts[] = {0, 1, 3, 8, 9, 100, 1000};
    constexpr ElementType kTypes[] = {ElementType::kFloat32, ElementType::kInt32,
                                      ElementType::kUint8, ElementType::kFloat16};
    header_.collective = algorithm_.collective;
    header_.algorithm = static_cast<std::uint8_t>(&algorithm_ - algorithms().data());
    header_.type = kTypes[input_.below(std::size(kTypes))];
    header_.op = input_.below(2) == 0 ? ReduceOp::kSum : ReduceOp::kMax;
    header_.segment_units = 1 + input_.below(4);
    const std::size_t count = kCounts[input_.below(std::size(kCounts))];
    header_.count_and_plan = std::uint64_t{count} << 16;
    const Schedule& schedule = executor_->schedule();
    Layout layout;
    layout.split(count, schedule.chunks, schedule.spans);
    const std::size_t element = element_bytes(header_.type);
    in_.emplace(layout.length(schedule.input) * element);
    out_.emplace(layout.length(schedule.output) * element);
  }

  void start() {
    Binding binding;
    binding.in = in_->data();
    binding.out = out_->data();
    binding.header = header_;
    if (!executor_->start_again(header_, header_.sequence, in_->data(), out_->data()))
      executor_->start(binding);
  }

  void step() {
    const auto peer = input_.below(static_cast<unsigned>(size_));
    PlayedChannel* const channel = played_[peer].get();
    switch (channel == nullptr ? 7 : input_.below(9)) {
      case 0:
        return bring_opening(*channel, 0);
      case 1:
        return bring_opening(*channel, input_.number<std::uint8_t>());
      case 2:
      case 3:
        return bring(*channel, channel->wanted());
      case 4:
        return bring(*channel, input_.number<std::uint16_t>() % (kMostBytes + 1));
      case 5:
        return channel->take_all();
      case 6:
        return channel->answer_one(input_.number<std::uint8_t>());
      case 7:
        return advance();
      default:
        return executor_->check_arrivals();
    }
  }

  // Sends this rank's own header, with some bits changed.
  void bring_opening(PlayedChannel& channel, std::uint8_t change) {
    Segment segment(kHeaderSegmentBytes);
    std::memcpy(segment.data(), &header_, sizeof header_);
    if (change != 0) segment.data()[input_.below(sizeof header_)] ^= static_cast<std::byte>(change);
    channel.bring(std::move(segment));
  }

  void bring(PlayedChannel& channel, std::size_t bytes) {
    Segment segment(bytes);
    const std::string_view some = input_.take(std::min<std::size_t>(bytes, input_.below(32)));
    if (!some.empty()) std::memcpy(segment.data(), some.data(), some.size());
    channel.bring(std::move(segment));
  }

  void advance() {
    if (executor_->advance()) {
      look_at_openings();
      ++header_.sequence;
      return start();
    }
    const int awaited = executor_->awaited_peer();
    require(awaited >= 0 && awaited < size_ && awaited != rank_,
            "a waiting executor waits for a peer");
    require(!executor_->describe_wait().empty() && !executor_->describe_location().empty(),
            "a waiting executor describes its wait");
  }

  void look_at_openings() {
    for (const auto& channel : played_) {
      const auto opening = channel ? channel->opened() : std::nullopt;
      require(!opening || *opening == header_, "what is taken was opened by the same call");
    }
  }

  void look_at(const Error& error) const {
    require(error.peer() >= 0 && error.peer() < size_ && error.peer() != rank_,
            "an error names the peer");
    if (error.code() == ErrorCode::kPeerLost) return;
    const PlayedChannel& channel = *played_[static_cast<std::size_t>(error.peer())];
    const CallHeader theirs = channel.opening();
    const bool is_kolo = !channel.has_failed() && theirs.magic == header_.magic;
    require(error.code() == (is_kolo ? ErrorCode::kMismatch : ErrorCode::kProtocol),
            "an error says whether the peer has called something else, or speaks otherwise");
    require(channel.has_failed() || !(theirs == header_), "the same call is no error");
  }

  Input& input_;
  const Algorithm& algorithm_;
  const int size_;
  const int rank_;
  const unsigned kind_;  // options of the channels: see the constructor
  std::vector<std::unique_ptr<PlayedChannel>> played_;
  std::vector<Channel*> channels_;
  std::unique_ptr<Executor> executor_;
  CallHeader header_;
  std::optional<Segment> in_;
  std::optional<Segment> out_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input input(data, size);
  Script(input).play();
  return 0;
}
