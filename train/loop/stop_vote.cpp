#include "train/loop/stop_vote.h"

#include <unistd.h>

#include <csignal>
#include <span>
#include <string_view>

namespace kolo::train {
namespace {

constexpr std::string_view kText =
    "kolo-train: ends after this iteration, with a checkpoint; a second signal ends it at once\n";

volatile std::sig_atomic_t received = 0;
volatile std::sig_atomic_t is_speaker = 0;  // one rank tells the user

void set_both(void (*handler)(int)) {
  std::signal(SIGINT, handler);
  std::signal(SIGTERM, handler);
}

extern "C" void note_signal(int signal) {
  received = signal;
  set_both(SIG_DFL);
  if (is_speaker != 0) static_cast<void>(!write(STDERR_FILENO, kText.data(), kText.size()));
}

}  // namespace

StopVote::StopVote(Communicator& communicator) : communicator_(communicator.duplicate()) {
  received = 0;
  is_speaker = communicator.rank() == 0 ? 1 : 0;
  set_both(note_signal);
}

StopVote::~StopVote() { set_both(SIG_DFL); }

int StopVote::vote() {
  std::int32_t signal = received;
  communicator_.all_reduce(std::span<std::int32_t>(&signal, 1), ReduceOp::kMax);
  return signal;
}

}  // namespace kolo::train
