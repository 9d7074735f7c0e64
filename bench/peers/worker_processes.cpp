#include "bench/peers/worker_processes.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <condition_variable>
#include <csignal>
#include <cstring>
#include <mutex>
#include <stdexcept>

#include "bench/measure/buffer.h"
#include "bench/measure/cores.h"
#include "bench/measure/memory_file.h"
#include "transports/error.h"

namespace kolo::bench {
namespace {

using namespace std::chrono_literals;

constexpr const char* kHost = "127.0.0.1";
constexpr auto kUntilTerminated = 10s;  // time for processes to end by themselves
constexpr auto kUntilKilled = 5s;
constexpr std::size_t kLastWords = 2000;

// Timeout for a pass: longer than its workers need to notice that it hangs.
std::chrono::milliseconds patience(std::size_t counted, int warmup, double seconds,
                                   std::chrono::milliseconds timeout) {
  const auto iterations = static_cast<std::int64_t>(counted) + warmup + 2;
  return timeout * iterations + std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1e4));
}

std::vector<char*> pointers_to(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

std::vector<std::string> environment_with(const StartCommand& command) {
  std::vector<std::string> result;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const auto name = text.substr(0, text.find('='));
    const auto is_named = [name](const auto& pair) { return pair.first == name; };
    if (std::ranges::none_of(command.environment, is_named)) result.emplace_back(text);
  }
  for (const auto& [name, value] : command.environment)
    result.push_back(fmt::format("{}={}", name, value));
  return result;
}

// Runs after fork: only async-signal-safe calls.
[[noreturn]] void become(char* const* words, char* const* environment, int input, int output,
                         pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(1);  // the parent ended before prctl
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  dup2(input, STDIN_FILENO);
  dup2(output, STDOUT_FILENO);
  dup2(output, STDERR_FILENO);
  execvpe(words[0], words, environment);
  constexpr char kText[] = "it could not be started: is it installed?\n";
  if (write(STDERR_FILENO, kText, sizeof kText - 1) < 0) _exit(126);
  _exit(127);
}

std::string how_it_ended(int status) {
  if (WIFSIGNALED(status)) return fmt::format("signal {}", WTERMSIG(status));
  return fmt::format("exit code {}", WEXITSTATUS(status));
}

}  // namespace

struct WorkerProcesses::Ending {
  std::mutex mutex;
  std::condition_variable changed;
  bool is_expected = false;
  bool has_ended = false;
};

WorkerProcesses::WorkerProcesses(std::string name, const LibraryRequest& request,
                                 StartCommand command)
    : name_(std::move(name)),
      rank_(request.rank),
      size_(request.size),
      timeout_(request.timeout),
      ending_(std::make_unique<Ending>()) {
  const Deadline deadline = Clock::now() + timeout_;
  if (rank_ == 0) {
    server_ = std::make_unique<TcpStoreServer>(kHost, 0);
    request.store->set("port", fmt::format("{}", server_->port()));
  }
  const std::uint16_t port = parse_port(request.store->get("port", deadline));
  store_ = connect_tcp_store(kHost, port, deadline);
  store_->join(rank_);
  if (rank_ == 0) {
    for (const std::string& word :
         {fmt::format("{}", port), fmt::format("{}", size_), fmt::format("{}", timeout_.count())})
      command.words.push_back(word);
    start(std::move(command));
  }
  try {
    version_ = store_->get(hello_key(rank_), deadline);
  } catch (const Error& error) {
    if (rank_ == 0) end_launcher();
    if (error.code() != ErrorCode::kDeadline) throw;
    throw Error(
        ErrorCode::kDeadline, kNoPeer,
        fmt::format("rank {}: {}'s worker process did not start within {:.1f} s; see whether its "
                    "launcher works here, or raise --timeout{}",
                    rank_, name_, std::chrono::duration<double>(timeout_).count(),
                    rank_ == 0 ? last_words() : ""));
  }
}

WorkerProcesses::~WorkerProcesses() {
  try {
    store_->set(request_key(turns_, rank_), "");
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): they know of the failure
  }
  if (rank_ == 0) end_launcher();
  try {
    store_->leave();
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): rank 0 has already ended
  }
}

PassResult WorkerProcesses::run_pass(const PassRequest& turn, const Buffer& data,
                                     const Buffer& input) {
  const WorkerRequest order{{}, turn, data.path(), data.bytes(), input.path(), input.bytes()};
  return parse_pass_result(
      ask(order, patience(turn.iterations, turn.warmup, turn.seconds, timeout_)));
}

P2pPassResult WorkerProcesses::run_pass(const P2pPassRequest& turn) {
  WorkerRequest order;
  order.game = turn;
  return parse_p2p_pass_result(
      ask(order, patience(turn.samples, turn.warmup, turn.seconds, timeout_)));
}

std::string WorkerProcesses::ask(const WorkerRequest& order, std::chrono::milliseconds patience) {
  store_->set(request_key(turns_, rank_), to_text(order));
  std::string text = store_->get(result_key(turns_, rank_), Clock::now() + patience);
  ++turns_;
  return text;
}

void WorkerProcesses::start(StartCommand command) {
  output_ = make_memory_file(0, "output of the launcher of " + name_);
  const posix::Descriptor input(open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!output_.is_open() || !input.is_open())
    posix::throw_system("kolo-bench: files for the launcher of " + name_);
  std::vector<std::string> environment = environment_with(command);
  const std::vector<char*> words = pointers_to(command.words);
  const std::vector<char*> variables = pointers_to(environment);
  const Unbound unbound;  // workers bind themselves, each as its rank
  const pid_t own = getpid();
  launcher_ = fork();
  if (launcher_ < 0) posix::throw_system("kolo-bench: starting the launcher of " + name_);
  if (launcher_ == 0) become(words.data(), variables.data(), input.get(), output_.get(), own);
  watcher_ = std::thread([this] { watch(); });
}

void WorkerProcesses::watch() {
  int status = 0;
  // The process stays a zombie until it is reported, so that its number is not reused.
  siginfo_t info{};
  while (waitid(P_PID, static_cast<id_t>(launcher_), &info, WEXITED | WNOWAIT) < 0 &&
         errno == EINTR) {
  }
  bool is_expected = false;
  {
    const std::lock_guard lock(ending_->mutex);
    is_expected = ending_->is_expected;
    ending_->has_ended = true;
    waitpid(launcher_, &status, 0);
  }
  ending_->changed.notify_all();
  if (is_expected && status == 0) return;
  try {
    store_->post_failure(
        fmt::format("{}: its processes have ended too early ({}); see "
                    "whether it works here without kolo-bench{}",
                    name_, how_it_ended(status), last_words()));
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): no rank is left
  }
}

void WorkerProcesses::end_launcher() {
  if (!watcher_.joinable()) return;
  const bool has_failed = store_->failure().has_value();
  {
    std::unique_lock lock(ending_->mutex);
    ending_->is_expected = true;
    const auto has_ended = [this] { return ending_->has_ended; };
    if (has_failed || !ending_->changed.wait_for(lock, kUntilTerminated, has_ended)) {
      if (!ending_->has_ended) kill(launcher_, SIGTERM);
      ending_->changed.wait_for(lock, kUntilKilled, has_ended);
      if (!ending_->has_ended) kill(launcher_, SIGKILL);
    }
  }
  watcher_.join();
}

// The output of the launcher and its processes, on one line.
std::string WorkerProcesses::last_words() const {
  const off_t end = lseek(output_.get(), 0, SEEK_END);
  const off_t begin = std::max<off_t>(0, end - static_cast<off_t>(kLastWords));
  std::array<char, kLastWords> text{};
  const ssize_t got = pread(output_.get(), text.data(), text.size(), begin);
  std::string words;
  for (ssize_t i = 0; i < got; ++i) {
    const char c = text[static_cast<std::size_t>(i)];
    const bool is_blank = c == '\n' || c == ' ' || c == '-' || c == '\0';
    if (!is_blank || (!words.empty() && words.back() != ' ')) words += c == '\n' ? ' ' : c;
  }
  return words.empty() ? "" : ": it said: " + words;
}

}  // namespace kolo::bench
