#include "transports/launch/pmi.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <string_view>

#include "transports/error.h"
#include "transports/posix/descriptor.h"

namespace kolo::inline v0::launch {
namespace {

constexpr const char* kKey = "kolo-store";
constexpr std::size_t kLongestAnswer = 64 * 1024;

// Value of `name` in "cmd=get_result rc=0 value=text"; empty if it is missing.
std::string value_of(std::string_view line, std::string_view name) {
  while (!line.empty()) {
    const std::string_view word = line.substr(0, line.find(' '));
    line.remove_prefix(std::min(line.size(), word.size() + 1));
    if (word.starts_with(name) && word.substr(name.size()).starts_with('='))
      return std::string(word.substr(name.size() + 1));
  }
  return {};
}

class Pmi {
 public:
  Pmi(int descriptor, Deadline deadline) : descriptor_(descriptor), deadline_(deadline) {}

  // Sends a request, and returns the answer, which has to be the command `answer`.
  std::string ask(const std::string& request, std::string_view answer) {
    send_line(request + "\n");
    std::string line = read_line();
    const std::string code = value_of(line, "rc");
    if (value_of(line, "cmd") == answer && (code.empty() || code == "0")) return line;
    refuse(fmt::format("it answered '{}' to '{}'", line, request));
  }

 private:
  [[noreturn]] void refuse(const std::string& why) const {
    throw Error(ErrorCode::kUnavailable, kNoPeer,
                fmt::format("the launcher's PMI service at descriptor {} (PMI_FD) cannot be used: "
                            "{}; set MASTER_ADDR and MASTER_PORT, or KOLO_STORE",
                            descriptor_, why));
  }

  void send_line(std::string_view text) const {
    while (!text.empty()) {
      ssize_t sent = send(descriptor_, text.data(), text.size(), MSG_NOSIGNAL);
      if (sent < 0 && errno == ENOTSOCK) sent = write(descriptor_, text.data(), text.size());
      if (sent < 0 && errno == EINTR) continue;
      if (sent < 0) refuse(posix::error_text(errno));
      text.remove_prefix(static_cast<std::size_t>(sent));
    }
  }

  // One byte at a time: the next line may be for the program's own MPI library.
  std::string read_line() const {
    const auto start = Clock::now();
    std::string line;
    while (line.size() < kLongestAnswer) {
      pollfd waiting{descriptor_, POLLIN, 0};
      const auto left =
          std::chrono::ceil<std::chrono::milliseconds>(deadline_ - Clock::now()).count();
      const int ready =
          poll(&waiting, 1, static_cast<int>(std::clamp<std::int64_t>(left, 0, 60'000)));
      if (ready < 0 && errno != EINTR) refuse(posix::error_text(errno));
      if (ready <= 0 && Clock::now() >= deadline_) give_up(start);
      if (ready <= 0) continue;
      char c = 0;
      const ssize_t got = read(descriptor_, &c, 1);
      if (got == 0) refuse("the launcher closed it");
      if (got < 0 && errno != EINTR && errno != EAGAIN) refuse(posix::error_text(errno));
      if (got != 1) continue;
      if (c == '\n') return line;
      line += c;
    }
    refuse("its answer has no end");
  }

  [[noreturn]] static void give_up(Clock::time_point start) {
    const std::chrono::duration<double> waited = Clock::now() - start;
    throw Error(ErrorCode::kDeadline, kNoPeer,
                fmt::format("waited {:.1f} s for all ranks at the barrier of the launcher (PMI): "
                            "each rank must make a communicator; is one late or gone?",
                            waited.count()));
  }

  const int descriptor_;
  const Deadline deadline_;
};

}  // namespace

std::string announce_by_pmi(int descriptor, int rank, const std::string& text, Deadline deadline) {
  Pmi pmi(descriptor, deadline);
  pmi.ask("cmd=init pmi_version=1 pmi_subversion=1", "response_to_init");
  const std::string space = value_of(pmi.ask("cmd=get_my_kvsname", "my_kvsname"), "kvsname");
  if (rank == 0)
    pmi.ask(fmt::format("cmd=put kvsname={} key={} value={}", space, kKey, text), "put_result");
  pmi.ask("cmd=barrier_in", "barrier_out");
  const std::string answer =
      pmi.ask(fmt::format("cmd=get kvsname={} key={}", space, kKey), "get_result");
  pmi.ask("cmd=finalize", "finalize_ack");
  return value_of(answer, "value");
}

}  // namespace kolo::inline v0::launch
