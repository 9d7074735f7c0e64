#include "collectives/schedule.h"

#include <fmt/format.h>

namespace kolo::inline v0 {

std::string_view to_string(StepKind kind) {
  switch (kind) {
    case StepKind::kSend:
      return "send";
    case StepKind::kReceive:
      return "receive";
    case StepKind::kReceiveSend:
      return "receive-send";
    case StepKind::kReceiveReduce:
      return "receive-reduce";
    case StepKind::kReceiveReduceSend:
      return "receive-reduce-send";
    case StepKind::kReceiveReduceCopySend:
      return "receive-reduce-copy-send";
    case StepKind::kSendForAnswer:
      return "send-for-answer";
    case StepKind::kReceiveReduceAnswer:
      return "receive-reduce-answer";
    case StepKind::kAnswer:
      return "answer";
    case StepKind::kReceiveAnswer:
      return "receive-answer";
    case StepKind::kCopy:
      return "copy";
    case StepKind::kReduce:
      return "reduce";
    case StepKind::kReduceSend:
      return "reduce-send";
    case StepKind::kUpdate:
      return "update";
  }
  return "unknown step";
}

std::string_view to_string(Collective collective) {
  switch (collective) {
    case Collective::kAllReduce:
      return "all_reduce";
    case Collective::kReduceScatter:
      return "reduce_scatter";
    case Collective::kAllGather:
      return "all_gather";
    case Collective::kBroadcast:
      return "broadcast";
    case Collective::kBarrier:
      return "barrier";
    case Collective::kPushPull:
      return "push_pull";
    case Collective::kPush:
      return "push";
    case Collective::kPull:
      return "pull";
    case Collective::kReduce:
      return "reduce";
    case Collective::kGather:
      return "gather";
    case Collective::kScatter:
      return "scatter";
    case Collective::kAllToAll:
      return "all_to_all";
    case Collective::kScan:
      return "scan";
    case Collective::kExclusiveScan:
      return "exclusive_scan";
    case Collective::kMessage:
      return "message";
  }
  return "unknown collective";
}

namespace {

std::string describe(const Operand& operand) {
  switch (operand.place) {
    case Place::kNone:
      return "-";
    case Place::kInput:
      return fmt::format("input[{}]", operand.chunk);
    case Place::kOutput:
      return fmt::format("output[{}]", operand.chunk);
    case Place::kScratch:
      return fmt::format("scratch[{}]", operand.chunk);
  }
  return "?";
}

std::string describe(const Step& step) {
  std::string line = fmt::format("{:<24} chunk {:<3}", to_string(step.kind), step.chunk);
  if (step.stage > 0) line += fmt::format(" stage {}", step.stage);
  if (step.slice > 0) line += fmt::format(" slice {}", step.slice);
  if (step.from != kNobody) line += fmt::format(" from {}", step.from);
  if (step.to != kNobody) line += fmt::format(" to {}", step.to);
  if (step.in.place != Place::kNone) line += fmt::format(" in {}", describe(step.in));
  if (step.out.place != Place::kNone) line += fmt::format(" out {}", describe(step.out));
  if (step.is_final) line += " final";
  if (step.is_held) line += " held";
  if (step.is_copied) line += " copied";
  if (step.is_in_last) line += " in-last";
  return line;
}

}  // namespace

std::string describe(const Schedule& schedule) {
  std::string text = fmt::format("{} {}: rank {} of {}, {} chunk{}, {} slice{}\n",
                                 schedule.algorithm, to_string(schedule.collective), schedule.rank,
                                 schedule.size, schedule.chunks, schedule.chunks == 1 ? "" : "s",
                                 schedule.slices, schedule.slices == 1 ? "" : "s");
  for (std::size_t i = 0; i < schedule.steps.size(); ++i) {
    text += fmt::format("  {:>3}  {}\n", i, describe(schedule.steps[i]));
  }
  return text;
}

}  // namespace kolo::inline v0
