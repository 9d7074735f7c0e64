#include "collectives/executor/executor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <type_traits>

#include "transports/error.h"

namespace kolo::inline v0 {
namespace {

// "8 B", "64.0 KiB", "4.0 MiB".
std::string format_bytes(std::size_t bytes) {
  if (bytes < 1024) return fmt::format("{} B", bytes);
  if (bytes < 1024 * 1024) return fmt::format("{:.1f} KiB", static_cast<double>(bytes) / 1024);
  return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / (1024 * 1024));
}

void write_header(std::byte* opening, const CallHeader& header) {
  std::memcpy(opening, &header, sizeof(header));
}

}  // namespace

bool Executor::advance_in_turns() {
  if (recorder_ != nullptr) [[unlikely]]
    return advance_recorded();
  for (; turn_ < turns_; ++turn_, step_ = 0) {
    for (; step_ < lines_.size(); ++step_) {
      if (!run(lines_[step_], turn_)) return prepare_to_wait();
    }
  }
  return finish();
}

bool Executor::run(Line& line, std::size_t turn) {
  Piece piece;
  std::size_t segment = 0;
  return !find_piece(line, turn, piece, segment) || run(line, piece, segment);
}

bool Executor::run(Line& line, const Piece& piece, std::size_t segment) {
  bool is_done = true;
  switch (line.kind) {
    case StepKind::kSend:
      is_done = send(line, piece, piece.flags);
      break;
    case StepKind::kSendForAnswer:
      is_done = send(line, piece, kAnswered);
      break;
    case StepKind::kReceive:
      is_done = receive(line, piece);
      break;
    case StepKind::kReceiveSend:
      is_done = receive_send(line, piece);
      break;
    case StepKind::kReceiveReduce:
      is_done = receive_reduce(line, piece);
      break;
    case StepKind::kReceiveReduceSend:
      is_done = receive_reduce_send(line, piece, nullptr);
      break;
    case StepKind::kReceiveReduceCopySend:
      is_done = line.is_direct && !is_inline(line, piece)
                    ? receive_reduce_then_send(line, piece)
                    : receive_reduce_send(line, piece, piece.out);
      break;
    case StepKind::kReceiveReduceAnswer:
      is_done = receive_reduce_answer(line, piece);
      break;
    case StepKind::kReceiveAnswer:
      is_done = receive_answer(line, piece);
      break;
    case StepKind::kAnswer:
      answer_held(line, piece);
      break;
    case StepKind::kCopy:
      take(line, piece, piece.out);
      break;
    case StepKind::kReduce:
      reduce_locally(line, piece);
      break;
    case StepKind::kReduceSend:
      is_done = reduce_send(line, piece);
      break;
    case StepKind::kUpdate:
      update(line, piece, segment);
      break;
  }
  moves_ += is_done ? 1 : 0;
  return is_done;
}

// --- steps: each takes its segment and its slot before it does anything, so it can be tried again
// ---

bool Executor::send(Line& line, const Piece& piece, unsigned flags) {
  const bool is_inline = piece.opens_out && out_[line.out_index].payload > 0;
  const bool is_answered = (flags & kAnswered) != 0;
  const bool is_lent = is_answered && line.may_lend && is_in_place_;
  if (is_inline || scales(line) || (is_answered && !is_lent)) {
    std::byte* to = slot(line, piece);
    if (to == nullptr) return false;
    take(line, piece, to);
    commit(line, piece, flags);
    return true;
  }
  if (piece.opens_out && !open_out(out_[line.out_index])) return false;
  const std::span<const std::byte> data(piece.in, piece.bytes);
  const bool is_copied = line.must_copy || sends_copies_;
  const bool is_sent = is_lent     ? line.to->send(data, kAnswered | kLent)
                       : is_copied ? line.to->send_copy(data, send_flags_ | flags)
                                   : line.to->send(data, send_flags_ | flags);
  return is_sent || blocked_out(*line.to, piece.bytes);
}

bool Executor::receive(Line& line, const Piece& piece) {
  const bool is_inline = piece.opens_in && in_[line.in_index].payload > 0;
  if (!line.is_held && !is_inline) {
    if (piece.opens_in && !open_in(in_[line.in_index])) return false;
    return line.from->receive({piece.out, piece.bytes}, piece.is_uncached ? kCold : kPlain) ||
           blocked_in(*line.from, piece.bytes);
  }
  const std::byte* from = line.is_held ? view_to_answer(line, piece) : view(line, piece);
  if (from == nullptr) return false;
  store(piece, from);
  if (!line.is_held) line.from->release();
  return true;
}

// True if the segment of a receive-send travels with the header, in or out.
bool Executor::is_inline(const Line& line, const Piece& piece) const {
  return (piece.opens_in && in_[line.in_index].payload > 0) ||
         (piece.opens_out && out_[line.out_index].payload > 0);
}

bool Executor::receive_send(Line& line, const Piece& piece) {
  if (line.is_direct && !is_inline(line, piece)) {
    if (!is_half_done_ && !receive(line, piece)) return false;
    is_half_done_ = true;
    return send_kept(line, piece);
  }
  const std::byte* from = view(line, piece);
  if (from == nullptr) return false;
  std::byte* to = slot(line, piece);
  if (to == nullptr) return false;
  std::memcpy(to, from, piece.bytes);
  if (piece.out != nullptr) store(piece, from);
  // Before commit(): release() throws if the channel is dead, and the data is not passed on then.
  line.from->release();
  commit(line, piece, kPlain);
  return true;
}

bool Executor::receive_reduce(Line& line, const Piece& piece) {
  const std::byte* from = line.is_held ? view_to_answer(line, piece) : view(line, piece);
  if (from == nullptr) return false;
  reduce(line, piece, piece.out, nullptr, from);
  if (!line.is_held) line.from->release();
  return true;
}

bool Executor::receive_reduce_send(Line& line, const Piece& piece, std::byte* kept) {
  const std::byte* from = view(line, piece);
  if (from == nullptr) return false;
  std::byte* to = slot(line, piece);
  if (to == nullptr) return false;
  reduce(line, piece, to, kept, from);
  line.from->release();  // before commit(), as in receive_send()
  commit(line, piece, kPlain);
  return true;
}

// The sum is sent from where it is stored; no slot is filled.
bool Executor::receive_reduce_then_send(Line& line, Piece piece) {
  piece.is_uncached = false;  // send() reads it again at once
  if (!is_half_done_) {
    if (!receive_reduce(line, piece)) return false;
    is_half_done_ = true;
  }
  return send_kept(line, piece);
}

// Second half of a line that receives into memory and sends from there.
bool Executor::send_kept(Line& line, const Piece& piece) {
  if (piece.opens_out && !open_out(out_[line.out_index])) return false;
  if (!line.to->send({piece.out, piece.bytes}, send_flags_))
    return blocked_out(*line.to, piece.bytes);
  is_half_done_ = false;
  return true;
}

bool Executor::receive_reduce_answer(Line& line, const Piece& piece) {
  std::byte* from = view_to_answer(line, piece);
  if (from == nullptr) return false;
  reduce(line, piece, from, piece.out, from);
  answer(line);
  return true;
}

bool Executor::receive_answer(Line& line, const Piece& piece) {
  const bool is_opening = piece.opens_out && out_[line.out_index].payload > 0;
  const std::byte* answer = line.to->view_answer(is_opening ? kHeaderSegmentBytes : piece.bytes);
  if (answer == nullptr) return blocked_in(*line.to, piece.bytes);
  if (is_opening) {
    answer += sizeof(CallHeader);
    header_bytes_received_ += kHeaderSegmentBytes - piece.bytes;
  }
  if (answer != piece.out) store(piece, answer);
  line.to->release_answer();
  return true;
}

void Executor::answer_held(Line& line, const Piece& piece) {
  take(line, piece, line.held->bytes);
  answer(line);
}

void Executor::answer(Line& line) {
  header_bytes_sent_ += line.held->header_bytes;
  line.from->answer();
}

void Executor::reduce_locally(const Line& line, const Piece& piece) const {
  reduce(line, piece, piece.out, nullptr, piece.out);
}

bool Executor::reduce_send(Line& line, const Piece& piece) {
  std::byte* to = slot(line, piece);
  if (to == nullptr) return false;
  reduce(line, piece, to, nullptr, piece.out);
  commit(line, piece, kPlain);
  return true;
}

void Executor::update(const Line& line, const Piece& piece, std::size_t segment) const {
  if (update_ == nullptr) return;
  const std::size_t begin = parts_[line.chunk].begin + segment * segment_bytes_;
  (*update_)(begin / element_bytes_, {piece.out, piece.bytes});
}

// out = in, scaled if this line scales its input.
void Executor::take(const Line& line, const Piece& piece, std::byte* out) const {
  if (scales(line)) return multiply_(out, piece.in, piece.bytes / element_bytes_, scale_);
  if (out == piece.in) return;
  if (out == piece.out) return store(piece, piece.in);
  std::memcpy(out, piece.in, piece.bytes);
}

void Executor::reduce(const Line& line, const Piece& piece, void* out, void* kept,
                      const std::byte* incoming) const {
  if (scales(line)) return reduce_scaled(line, piece, out, kept, incoming);
  const std::byte* left = line.is_in_last ? incoming : piece.in;
  const std::byte* right = line.is_in_last ? piece.in : incoming;
  if (reducer_ != nullptr) return combine(piece, out, kept, left, right);
  if (piece.is_uncached) {
    return reduce_non_temporal(
        line, piece, kept == nullptr ? nullptr : static_cast<std::byte*>(out), left, right);
  }
  kernel_(out, kept, left, right, piece.bytes / element_bytes_, line.is_final ? divisor_ : 1);
}

// Block by block: a scaled block of the input is rounded to the type, and stays in the L1 cache
// until it is added.
void Executor::reduce_scaled(const Line& line, const Piece& piece, void* out, void* kept,
                             const std::byte* incoming) const {
  alignas(kSegmentAlignment) std::byte scaled[4096];
  auto* const outs = static_cast<std::byte*>(out);
  auto* const keeps = static_cast<std::byte*>(kept);
  for (std::size_t begin = 0; begin < piece.bytes; begin += sizeof(scaled)) {
    const std::size_t count = std::min(sizeof(scaled), piece.bytes - begin) / element_bytes_;
    multiply_(scaled, piece.in + begin, count, scale_);
    const std::byte* left = line.is_in_last ? incoming + begin : scaled;
    const std::byte* right = line.is_in_last ? scaled : incoming + begin;
    kernel_(outs + begin, keeps == nullptr ? nullptr : keeps + begin, left, right, count, 1);
  }
}

// Calls the caller's function. Its exceptions are marked, to distinguish them from this library's.
void Executor::combine(const Piece& piece, void* out, void* kept, const std::byte* left,
                       const std::byte* right) const {
  try {
    reducer_->combine(out, left, right, piece.bytes / element_bytes_);
  } catch (const std::exception& error) {
    throw std::runtime_error(fmt::format("the user function threw: {}", error.what()));
  } catch (...) {
    throw std::runtime_error("the user function threw an exception that is not a std::exception");
  }
  if (kept != nullptr && kept != out) std::memcpy(kept, out, piece.bytes);
}

// --- segments; the first one on a channel has the header before it or in it ---

// Memory for a segment's bytes; null, and blocked, if there is no credit.
std::byte* Executor::slot(Line& line, const Piece& piece) {
  if (piece.opens_out) {
    Direction& out = out_[line.out_index];
    if (out.payload > 0) {
      std::byte* opening = line.to->reserve(kHeaderSegmentBytes);
      if (opening == nullptr) return blocked_out(*line.to, piece.bytes), nullptr;
      write_header(opening, header_of(out));
      return opening + sizeof(header_);
    }
    if (!open_out(out)) return nullptr;
  }
  std::byte* slot = line.to->reserve(piece.bytes);
  if (slot == nullptr) blocked_out(*line.to, piece.bytes);
  return slot;
}

void Executor::commit(Line& line, const Piece& piece, unsigned flags) {
  line.to->commit(flags);
  if (!piece.opens_out) return;
  Direction& out = out_[line.out_index];
  if (!is_open(out)) header_bytes_sent_ += kHeaderSegmentBytes - piece.bytes;
  out.opened = operation_;
}

// Sends the header alone, ahead of a segment that follows at once.
bool Executor::open_out(Direction& out, unsigned flags) {
  if (is_open(out)) return true;
  std::byte* opening = out.channel->reserve(kHeaderSegmentBytes);
  if (opening == nullptr) return blocked_out(*out.channel, kHeaderSegmentBytes);
  write_header(opening, header_of(out));
  std::memset(opening + sizeof(header_), 0, kInlinePayloadBytes);
  out.channel->commit(flags);
  header_bytes_sent_ += kHeaderSegmentBytes;
  out.opened = operation_;
  return true;
}

// The bytes of a received segment; null, and blocked, if it has not arrived.
const std::byte* Executor::view(Line& line, const Piece& piece) {
  if (piece.opens_in) {
    Direction& in = in_[line.in_index];
    if (!open_in(in)) return nullptr;
    if (in.payload > 0) return line.from->view(kHeaderSegmentBytes) + sizeof(CallHeader);
  }
  const std::byte* from = line.from->view(piece.bytes);
  if (from == nullptr) blocked_in(*line.from, piece.bytes);
  return from;
}

std::byte* Executor::view_to_answer(Line& line, const Piece& piece) {
  if (piece.opens_in && !open_in(in_[line.in_index])) return nullptr;
  if (piece.opens_in && in_[line.in_index].payload > 0) {
    std::byte* opening = line.from->view_to_answer(kHeaderSegmentBytes);
    *line.held = {opening + sizeof(CallHeader), kHeaderSegmentBytes - piece.bytes};
  } else {
    *line.held = {line.from->view_to_answer(piece.bytes), 0};
    if (line.held->bytes == nullptr) blocked_in(*line.from, piece.bytes);
  }
  return line.held->bytes;
}

// True once the header has arrived and matches. If it carries no payload, its segment is released.
bool Executor::open_in(Direction& in) {
  if (is_open(in)) return true;
  const std::byte* opening = in.channel->view(kHeaderSegmentBytes);
  if (opening == nullptr) return blocked_in(*in.channel, 0);
  const CallHeader mine = header_of(in);
  if (!mine.is(opening)) refuse(in.channel->peer(), opening, mine);
  if (in.payload == 0) in.channel->release();
  header_bytes_received_ += kHeaderSegmentBytes - in.payload;
  in.opened = operation_;
  return true;
}

// The header for one channel. If ranks know no common count, it has the channel's own count.
CallHeader Executor::header_of(const Direction& direction) const {
  CallHeader header = header_;
  if (has_own_lengths_)
    header.count_and_plan = static_cast<std::uint64_t>(direction.elements) << 16;
  return header;
}

void Executor::refuse(int peer, const std::byte* opening, const CallHeader& mine) const {
  CallHeader theirs;
  std::memcpy(&theirs, opening, sizeof(theirs));
  if (theirs.magic == mine.magic) {
    throw Error(ErrorCode::kMismatch, peer, describe_mismatch(peer, theirs, schedule_.rank, mine));
  }
  throw Error(
      ErrorCode::kProtocol, peer,
      fmt::format("rank {}: rank {} sent an invalid call header; do all ranks run the same build?",
                  schedule_.rank, peer));
}

void Executor::check_arrivals() {
  const int peer = awaited_peer_;
  const std::size_t bytes = awaited_bytes_;
  const bool to_send = waits_to_send_;
  for (Direction& in : in_) open_in(in);
  awaited_peer_ = peer;
  awaited_bytes_ = bytes;
  waits_to_send_ = to_send;
}

// Sends and receives headers of channels without a segment, then waits until the channels are
// drained.
bool Executor::finish() {
  for (Direction& out : out_) {
    if (!is_open(out) && !open_out(out, kPlain)) return false;
  }
  for (Direction& in : in_) {
    if (!is_open(in) && !open_in(in)) return false;
  }
  return is_drained();
}

bool Executor::blocked_out(const Channel& to, std::size_t bytes) {
  waits_to_send_ = true;
  awaited_peer_ = to.peer();
  awaited_bytes_ = bytes;
  return false;
}

bool Executor::blocked_in(const Channel& from, std::size_t bytes) {
  waits_to_send_ = false;
  awaited_peer_ = from.peer();
  awaited_bytes_ = bytes;
  return false;
}

std::string Executor::describe_wait() const {
  if (waits_to_send_ && awaited_bytes_ == 0)
    return fmt::format("wait for rank {} to receive the sent data", awaited_peer_);
  if (awaited_bytes_ == 0)
    return fmt::format("receive of the call header from rank {}", awaited_peer_);
  return fmt::format("{} of {} {} rank {}", waits_to_send_ ? "send" : "receive",
                     format_bytes(awaited_bytes_), waits_to_send_ ? "to" : "from", awaited_peer_);
}

std::string Executor::describe_location() const {
  return fmt::format("{} step {} of {}", schedule_.algorithm, std::min(step_ + 1, lines_.size()),
                     lines_.size());
}

}  // namespace kolo::inline v0
