// Constructors of schedule steps, for the algorithms: the action, the peers, the operands.
//
// A step streams the chunk of its operands. Peers are ranks.
#pragma once

#include <cstdint>

#include "collectives/schedule.h"

namespace kolo::inline v0::steps {

constexpr Operand input(int chunk) { return {Place::kInput, static_cast<std::uint16_t>(chunk)}; }
constexpr Operand output(int chunk) { return {Place::kOutput, static_cast<std::uint16_t>(chunk)}; }
constexpr Operand scratch(int chunk) {
  return {Place::kScratch, static_cast<std::uint16_t>(chunk)};
}

constexpr Step step(StepKind kind, int from, int to, Operand in, Operand out) {
  Step made;
  made.kind = kind;
  made.chunk = in.place == Place::kNone ? out.chunk : in.chunk;
  made.from = static_cast<std::int16_t>(from);
  made.to = static_cast<std::int16_t>(to);
  made.in = in;
  made.out = out;
  return made;
}

// Marks the step that completes the reduction.
constexpr Step final(Step made) {
  made.is_final = true;
  return made;
}
constexpr Step final_if(bool is_final, Step made) {
  made.is_final = is_final;
  return made;
}
// Sends a copy, so that the memory may be written at once.
constexpr Step copied(Step made) {
  made.is_copied = true;
  return made;
}
// Makes `in` the right operand of the reduction.
constexpr Step in_last(Step made) {
  made.is_in_last = true;
  return made;
}
constexpr Step in_last_if(bool is_in_last, Step made) {
  made.is_in_last = is_in_last;
  return made;
}
constexpr Step at_stage(int stage, Step made) {
  made.stage = static_cast<std::uint8_t>(stage);
  return made;
}

constexpr Step send(int to, Operand in) { return step(StepKind::kSend, kNobody, to, in, {}); }
constexpr Step receive(int from, Operand out) {
  return step(StepKind::kReceive, from, kNobody, {}, out);
}
// to <- from
constexpr Step pass_on(int from, int to, int chunk) {
  Step made = step(StepKind::kReceiveSend, from, to, {}, {});
  made.chunk = static_cast<std::uint16_t>(chunk);
  return made;
}
// out = to <- from
constexpr Step receive_send(int from, int to, Operand out) {
  return step(StepKind::kReceiveSend, from, to, {}, out);
}
// out = in op from
constexpr Step receive_reduce(int from, Operand in, Operand out) {
  return step(StepKind::kReceiveReduce, from, kNobody, in, out);
}
// to <- in op from
constexpr Step receive_reduce_send(int from, int to, Operand in) {
  return step(StepKind::kReceiveReduceSend, from, to, in, {});
}
// out = to <- in op from
constexpr Step receive_reduce_copy_send(int from, int to, Operand in, Operand out) {
  return step(StepKind::kReceiveReduceCopySend, from, to, in, out);
}
constexpr Step copy(Operand in, Operand out) {
  return step(StepKind::kCopy, kNobody, kNobody, in, out);
}
// out = in op out
constexpr Step reduce(Operand in, Operand out) {
  return step(StepKind::kReduce, kNobody, kNobody, in, out);
}

// to <- in op out
constexpr Step reduce_send(int to, Operand in, Operand out) {
  return step(StepKind::kReduceSend, kNobody, to, in, out);
}

}  // namespace kolo::inline v0::steps
