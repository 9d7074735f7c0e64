#include "train/loop/stop_vote.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <span>
#include <string_view>

namespace kolo::train {
namespace {

volatile std::sig_atomic_t received = 0;
// The text of the rank that tells the user; of the others it is empty.
std::array<char, 120> text{};
std::size_t text_size = 0;

void set_both(void (*handler)(int)) {
  std::signal(SIGINT, handler);
  std::signal(SIGTERM, handler);
}

extern "C" void note_signal(int signal) {
  received = signal;
  set_both(SIG_DFL);
  static_cast<void>(!write(STDERR_FILENO, text.data(), text_size));
}

}  // namespace

StopVote::StopVote(Communicator& communicator, std::string_view end)
    : communicator_(communicator.duplicate()) {
  received = 0;
  text_size = 0;
  if (communicator.rank() == 0) {
    const auto written = fmt::format_to_n(
        text.data(), text.size(),
        "kolo-train: ends after {}, with a checkpoint; a second signal ends it at once\n", end);
    text_size = std::min(written.size, text.size());
  }
  set_both(note_signal);
}

StopVote::~StopVote() { set_both(SIG_DFL); }

int StopVote::vote() {
  std::int32_t signal = received;
  communicator_.all_reduce(std::span<std::int32_t>(&signal, 1), ReduceOp::kMax);
  return signal;
}

}  // namespace kolo::train
