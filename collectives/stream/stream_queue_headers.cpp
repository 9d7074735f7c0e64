// Watches operations that were given to streams: call headers of other ranks, and the device's
// progress.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "collectives/executor/recorder.h"
#include "collectives/stream/stream_queue.h"
#include "transports/error.h"

namespace kolo::inline v0 {
namespace {

constexpr std::size_t kCellBytes = kSegmentAlignment;
static_assert(kHeaderSegmentBytes <= kCellBytes);

void write_opening(std::byte* to, const CallHeader& header) {
  std::memset(to, 0, kHeaderSegmentBytes);
  std::memcpy(to, &header, sizeof(header));
}

}  // namespace

CallHeader StreamQueue::header_for(const Given& given, std::size_t elements) const {
  CallHeader header = given.header;
  if (given.has_own_lengths) header.count_and_plan = static_cast<std::uint64_t>(elements) << 16;
  return header;
}

// Records the time of a try to send or receive a header: the first try, and the last.
void StreamQueue::note_header_attempt() {
  if (recorder_ == nullptr) [[likely]]
    return;
  header_worked_ = Clock::now();
  if (header_tried_ == Clock::time_point{}) header_tried_ = header_worked_;
}

// Records a header that was sent or received.
void StreamQueue::record_header(int to, int from) {
  if (recorder_ == nullptr) [[likely]]
    return;
  StepRecord record;
  record.kind = StepRecord::kOpening;
  record.track = kStreamTrack;
  record.to = static_cast<std::int16_t>(to);
  record.from = static_cast<std::int16_t>(from);
  record.bytes = kHeaderSegmentBytes;
  record.begin = header_tried_;
  record.worked = header_worked_;
  record.end = Clock::now();
  recorder_->add(record);
  header_tried_ = {};
}

// --- call headers over the host's channels ---

// As many headers as the peer can send while this rank reads none: its host may wait for its stream
// without calling kolo.
std::size_t StreamQueue::max_pending_headers(int peer) const {
  const Capabilities& can = channels_[static_cast<std::size_t>(peer)]->capabilities();
  return std::min(kMaxOperationsAhead, static_cast<std::size_t>(can.credit_segments));
}

bool StreamQueue::send_header_on_host() {
  Given& given = current();
  for (; !to_open_.empty(); to_open_.pop_back()) {
    note_header_attempt();
    const int peer = to_open_.back();
    Channel& channel = *channels_[static_cast<std::size_t>(peer)];
    std::byte* const opening = channel.reserve(kHeaderSegmentBytes);
    if (opening == nullptr)
      return wait_for(peer, fmt::format("rank {} to read earlier call headers", peer));
    write_opening(opening, header_for(given, given.executor->elements_to(peer)));
    channel.commit();
    record_header(peer, kNobody);
    header_bytes_sent_ += kHeaderSegmentBytes;
    ++moves_;
  }
  for (const int peer : given.executor->receives_from()) {
    const auto& expected = expected_[static_cast<std::size_t>(peer)];
    if (expected.size() > max_pending_headers(peer))
      return wait_for(peer, fmt::format("rank {} to call {}", peer, describe(expected[0].header)));
  }
  return true;
}

// From the start of the operation, so that arriving headers are not taken for strays.
void StreamQueue::expect_headers() {
  Given& given = current();
  for (const int peer : given.executor->receives_from()) {
    expected_[static_cast<std::size_t>(peer)].push_back(
        {number_, header_for(given, given.executor->elements_from(peer))});
    ++given.unread;
  }
}

void StreamQueue::read_headers() {
  for (std::size_t peer = 0; peer < expected_.size(); ++peer) {
    auto& expected = expected_[peer];
    while (!expected.empty()) {
      Channel& channel = *channels_[peer];
      const std::byte* const opening = channel.view(kHeaderSegmentBytes);
      if (opening == nullptr) break;
      const auto tried = std::exchange(header_tried_, {});  // may belong to a header being sent
      note_header_attempt();
      compare(static_cast<int>(peer), opening, expected.front().header);
      channel.release();
      record_header(kNobody, static_cast<int>(peer));
      header_tried_ = tried;
      header_bytes_received_ += kHeaderSegmentBytes;
      --given_.at(expected.front().number).unread;
      expected.pop_front();
      ++moves_;
    }
  }
}

void StreamQueue::compare(int peer, const std::byte* opening, const CallHeader& mine) const {
  CallHeader theirs;
  std::memcpy(&theirs, opening, sizeof(theirs));
  if (theirs == mine) return;
  if (theirs.magic == mine.magic)
    throw Error(ErrorCode::kMismatch, peer, describe_mismatch(peer, theirs, rank_, mine));
  throw Error(
      ErrorCode::kProtocol, peer,
      fmt::format("rank {}: rank {} sent an invalid call header; do all ranks run the same build?",
                  rank_, peer));
}

bool StreamQueue::is_expecting(const Channel& channel) const {
  return !expected_[static_cast<std::size_t>(channel.peer())].empty();
}

bool StreamQueue::holds_up(const Executor& executor) {
  for (Channel* const channel : channels_) {
    if (channel == nullptr || !is_expecting(*channel) || !executor.receives_on(*channel)) continue;
    const auto& expected = expected_[static_cast<std::size_t>(channel->peer())];
    wait_for(channel->peer(),
             fmt::format("rank {} to call {}", channel->peer(), describe(expected.front().header)));
    return true;
  }
  return false;
}

// --- call headers through streams ---

// Pinned memory is allocated before the first call: an allocation may wait for all streams, and
// these wait for this host's progress.
void StreamQueue::make_cells(std::size_t count) {
  std::byte* const memory = own_->at->allocate_host(count * kCellBytes);
  own_->pinned.push_back(memory);
  std::byte* const seen = own_->at->seen_by_device(memory);
  for (std::size_t i = 0; i < count * kCellBytes; i += kCellBytes)
    idle_cells_.push_back({memory + i, seen + i, kNobody, {}});
}

// A cleared cell for a header of `given`, if one is idle.
StreamQueue::Cell& StreamQueue::take_cell(Given& given) {
  given.cells.push_back(idle_cells_.back());
  idle_cells_.pop_back();
  std::memset(given.cells.back().bytes, 0, kHeaderSegmentBytes);
  return given.cells.back();
}

bool StreamQueue::send_header_on_stream(void* stream) {
  Given& given = current();
  for (; !to_open_.empty(); to_open_.pop_back()) {
    note_header_attempt();
    const int peer = to_open_.back();
    StreamChannel& channel = *streams_[static_cast<std::size_t>(peer)];
    std::byte* const slot =
        idle_cells_.empty() ? nullptr : channel.reserve(stream, kHeaderSegmentBytes);
    if (slot == nullptr) return wait_for(peer, "progress of this rank's streams");
    const Cell& cell = take_cell(given);
    write_opening(cell.bytes, header_for(given, given.executor->elements_to(peer)));
    own_->math->copy(slot, cell.seen, kHeaderSegmentBytes, stream);
    channel.commit(stream, kPlain);
    record_header(peer, kNobody);
    header_bytes_sent_ += kHeaderSegmentBytes;
    ++moves_;
  }
  return true;
}

// Before the first segment from this peer. False: "not now", too many transfers are under way.
bool StreamQueue::receive_header_on_stream(int peer) {
  Given& given = current();
  StreamChannel& channel = *streams_[static_cast<std::size_t>(peer)];
  note_header_attempt();
  if (idle_cells_.empty()) return false;
  const std::byte* const opening = channel.view(given.stream, kHeaderSegmentBytes);
  if (opening == nullptr) return false;
  Cell& cell = take_cell(given);
  cell.from = peer;
  cell.expected = header_for(given, given.executor->elements_from(peer));
  own_->math->copy(cell.seen, opening, kHeaderSegmentBytes, given.stream);
  channel.release(given.stream);
  record_header(kNobody, peer);
  header_bytes_received_ += kHeaderSegmentBytes;
  ++moves_;
  return true;
}

// --- the end of operations ---

void StreamQueue::hand_over(const Operation& operation, std::shared_ptr<Operation> waited_for) {
  Given& given = current();
  given.deadline = operation.deadline;
  given.waited_for = std::move(waited_for);
  if (given.waited_for) ++waited_for_;
}

bool StreamQueue::is_over(const Given& given) const {
  if (!given.is_given || given.unread > 0) return false;
  if (given.event == nullptr) return true;
  if (!own_->at->has_come(given.event)) return false;
  for (StreamChannel* const channel : streams_) {
    if (channel != nullptr) channel->require_whole();
  }
  for (const Cell& cell : given.cells) {
    if (cell.from != kNobody) compare(cell.from, cell.bytes, cell.expected);
  }
  return true;
}

void StreamQueue::forget(Given& given) noexcept {
  for (Cell& cell : given.cells) {
    cell.from = kNobody;
    idle_cells_.push_back(cell);
  }
  if (given.event != nullptr) idle_events_.push_back(given.event);
  if (given.waited_for) --waited_for_;
}

std::shared_ptr<Operation> StreamQueue::take_over() {
  for (auto at = given_.begin(); at != given_.end();) {
    Given& given = at->second;
    if (!is_over(given)) {
      if (waited_for_ == 0) break;  // no Work waits for a later one
      ++at;
      continue;
    }
    forget(given);
    const std::shared_ptr<Operation> waited_for = std::move(given.waited_for);
    at = given_.erase(at);
    if (waited_for) return waited_for;
  }
  if (is_leaving_ && given_.empty()) is_leaving_ = !has_all_left();
  return nullptr;
}

bool StreamQueue::has_all_left() const {
  return std::ranges::all_of(channels_, [](Channel* const channel) {
    return channel == nullptr || channel->is_drained();
  });
}

std::vector<std::shared_ptr<Operation>> StreamQueue::take_all() {
  std::vector<std::shared_ptr<Operation>> all;
  for (auto& [number, given] : given_) {
    if (given.waited_for) all.push_back(std::exchange(given.waited_for, nullptr));
  }
  waited_for_ = 0;
  return all;
}

std::optional<StreamQueue::Pending> StreamQueue::next_due() const {
  std::optional<Pending> next;
  const auto consider = [&next](const Pending& pending) {
    if (!next || pending.deadline < next->deadline) next = pending;
  };
  for (std::size_t peer = 0; peer < expected_.size(); ++peer) {
    if (expected_[peer].empty()) continue;
    const Expected& first = expected_[peer].front();
    const Given& given = given_.at(first.number);
    consider({&first.header, static_cast<int>(peer), given.deadline, given.timeout});
  }
  for (const auto& [number, given] : given_) {
    if (given.waited_for && given.unread == 0)
      consider({&given.header, kNobody, given.deadline, given.timeout});
  }
  return next;
}

int StreamQueue::peer_without_header(const CallHeader& header) const {
  for (const auto& [number, given] : given_) {
    if (&given.header != &header) continue;
    for (const Cell& cell : given.cells) {
      std::uint16_t magic = 0;
      std::memcpy(&magic, cell.bytes, sizeof(magic));
      if (cell.from != kNobody && magic != given.header.magic) return cell.from;
    }
  }
  return kNobody;
}

const CallHeader* StreamQueue::first_at_work() const {
  for (const auto& [number, given] : given_) {
    const bool has_left =
        given.is_given && (given.event == nullptr || own_->at->is_done(given.event));
    if (!has_left) return &given.header;
  }
  return nullptr;
}

}  // namespace kolo::inline v0
