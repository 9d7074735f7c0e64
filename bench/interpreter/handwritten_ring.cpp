#include "bench/interpreter/handwritten_ring.h"

#include <algorithm>
#include <cstring>
#include <thread>

#include "bench/measure/cores.h"
#include "collectives/schedule.h"

namespace kolo::bench {
namespace {

constexpr int kSpins = 200;
constexpr std::size_t kSlices = 2;  // with three or more ranks

// Repeats `attempt` until it returns non-null.
template <typename Attempt>
auto insist(const Attempt& attempt) {
  SpinWait spinning;
  auto* got = attempt();
  for (; got == nullptr; got = attempt()) spinning.wait();
  return got;
}

void insist_send(Channel& channel, const float* from, std::size_t bytes) {
  SpinWait spinning;
  while (!channel.send({reinterpret_cast<const std::byte*>(from), bytes})) spinning.wait();
}

void insist_receive(Channel& channel, float* into, std::size_t bytes) {
  SpinWait spinning;
  while (!channel.receive({reinterpret_cast<std::byte*>(into), bytes})) spinning.wait();
}

}  // namespace

void SpinWait::wait() {
  if (++spins_ > kSpins) return std::this_thread::yield();
  relax();
}

// Elements [begin, begin + length): a chunk, or a segment of it.
struct HandwrittenRing::Chunk {
  std::size_t begin = 0;
  std::size_t length = 0;

  std::size_t bytes() const { return length * sizeof(float); }
  std::size_t segments(std::size_t per_segment) const {
    return (length + per_segment - 1) / per_segment;
  }
  // Empty if there is no such segment.
  Chunk segment(std::size_t index, std::size_t per_segment) const {
    const std::size_t first = std::min(index * per_segment, length);
    return {begin + first, std::min(per_segment, length - first)};
  }
};

HandwrittenRing::Chunk HandwrittenRing::chunk(int steps_to_the_left, std::size_t count) const {
  const int index = ((rank - steps_to_the_left) % size + size) % size;
  return {chunk_begin(count, size, index), chunk_count(count, size, index)};
}

void HandwrittenRing::all_reduce(const float* in, float* out, std::size_t count) const {
  if (size == 2) {
    const std::size_t turns = turns_of_two(count);
    for (std::size_t turn = 0; turn < turns; ++turn) turn_of_two(in, out, count, turn);
    return;
  }
  const std::size_t segments =
      Chunk{0, chunk_count(count, size, 0)}.segments(segment_bytes / sizeof(float));
  for (std::size_t turn = 0; turn < (segments + kSlices - 1) / kSlices; ++turn) {
    turn_of_many(in, out, count, turn);
  }
}

// --- two ranks: the peer overwrites the segment with the sum; three stages, one turn apart ---

std::size_t HandwrittenRing::turns_of_two(std::size_t count) const {
  return chunk(0, count).segments(segment_bytes / sizeof(float)) + 2;
}

void HandwrittenRing::turn_of_two(const float* in, float* out, std::size_t count,
                                  std::size_t turn) const {
  const std::size_t per_segment = segment_bytes / sizeof(float);
  if (const Chunk asked = chunk(1, count).segment(turn, per_segment); asked.length > 0) {
    std::byte* slot = insist([&] { return right->reserve(asked.bytes()); });
    std::memcpy(slot, in + asked.begin, asked.bytes());
    right->commit(kAnswered);
  }
  if (turn < 1) return;
  if (const Chunk mine = chunk(0, count).segment(turn - 1, per_segment); mine.length > 0) {
    std::byte* theirs = insist([&] { return left->view_to_answer(mine.bytes()); });
    kernel(theirs, out + mine.begin, in + mine.begin, theirs, mine.length, 1);
    left->answer();
  }
  if (turn < 2) return;
  if (const Chunk asked = chunk(1, count).segment(turn - 2, per_segment); asked.length > 0) {
    const std::byte* answer = insist([&] { return right->view_answer(asked.bytes()); });
    std::memcpy(out + asked.begin, answer, asked.bytes());
    right->release_answer();
  }
}

// --- three or more ranks: partial sums travel, then complete chunks; two slices per turn ---

void HandwrittenRing::turn_of_many(const float* in, float* out, std::size_t count,
                                   std::size_t turn) const {
  const std::size_t per_segment = segment_bytes / sizeof(float);
  const auto each_slice = [&](int steps_to_the_left, const auto& work) {
    for (std::size_t slice = 0; slice < kSlices; ++slice) {
      const Chunk piece =
          chunk(steps_to_the_left, count).segment(turn * kSlices + slice, per_segment);
      if (piece.length > 0) work(piece);
    }
  };
  each_slice(1, [&](const Chunk& piece) { insist_send(*right, in + piece.begin, piece.bytes()); });
  for (int k = 2; k < size; ++k) {
    each_slice(k, [&](const Chunk& piece) { pass_on_sum(in, nullptr, piece); });
  }
  each_slice(0, [&](const Chunk& piece) { pass_on_sum(in, out, piece); });
  for (int k = 1; k < size - 1; ++k) {
    each_slice(k, [&](const Chunk& piece) { pass_on(out, piece); });
  }
  each_slice(size - 1,
             [&](const Chunk& piece) { insist_receive(*left, out + piece.begin, piece.bytes()); });
}

void HandwrittenRing::pass_on_sum(const float* in, float* kept, const Chunk& piece) const {
  const std::byte* partial = insist([&] { return left->view(piece.bytes()); });
  std::byte* slot = insist([&] { return right->reserve(piece.bytes()); });
  kernel(slot, kept == nullptr ? nullptr : kept + piece.begin, in + piece.begin, partial,
         piece.length, 1);
  right->commit();
  left->release();
}

void HandwrittenRing::pass_on(float* out, const Chunk& piece) const {
  const std::byte* complete = insist([&] { return left->view(piece.bytes()); });
  std::byte* slot = insist([&] { return right->reserve(piece.bytes()); });
  std::memcpy(slot, complete, piece.bytes());
  right->commit();
  std::memcpy(out + piece.begin, complete, piece.bytes());
  left->release();
}

}  // namespace kolo::bench
