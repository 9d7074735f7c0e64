// Format: Chromium's "Trace Event Format", array form, one event per line.
#include "transports/decorators/trace_file.h"

#include <fmt/format.h>
#include <unistd.h>
#include <cerrno>
#include <exception>
#include <filesystem>
#include <set>

#include "transports/posix/descriptor.h"
#include "transports/posix/unnamed_file.h"

namespace kolo::inline v0::decorators {

namespace {

constexpr std::size_t kMostEvents = 1'000'000;
constexpr std::size_t kWriteBytes = std::size_t{1} << 20;
constexpr int kMostFiles = 10'000;

double microseconds(Clock::duration time) {
  return std::chrono::duration<double, std::micro>(time).count();
}

const char* name_of(TraceKind kind) {
  switch (kind) {
    case TraceKind::kSend:
      return "send";
    case TraceKind::kReceive:
      return "receive";
    case TraceKind::kAnswer:
      return "answer";
  }
  return "unknown";
}

// Row in the timeline: two per peer.
int row_of(const TraceEvent& event) {
  return 2 * event.peer + (event.kind == TraceKind::kReceive ? 1 : 0);
}

// Buffered writer to a file; stops at the first error.
class Writer {
 public:
  explicit Writer(int file) : file_(file) {}

  void add(const std::string& text) {
    text_ += text;
    if (text_.size() >= kWriteBytes) flush();
  }

  int finish() {
    flush();
    return error_;
  }

 private:
  void flush() {
    std::string_view left = text_;
    while (error_ == 0 && !left.empty()) {
      const ssize_t written = ::write(file_, left.data(), left.size());
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) {
        error_ = written < 0 ? errno : EIO;
      } else {
        left.remove_prefix(static_cast<std::size_t>(written));
      }
    }
    text_.clear();
  }

  int file_;
  int error_ = 0;
  std::string text_;
};

void write_names(const TraceLog& log, Writer& writer) {
  const auto name = [&](const char* what, int row, const std::string& text) {
    return fmt::format(R"({{"name":"{}","ph":"M","pid":{},"tid":{},"args":{{"name":"{}",)", what,
                       log.rank, row, text) +
           fmt::format(R"("left_out":{}}}}})", log.left_out);
  };
  std::set<int> rows;
  for (const TraceEvent& event : log.events) rows.insert(row_of(event));
  for (const int row : rows) {
    const char* way = row % 2 == 0 ? "to" : "from";
    writer.add(name("thread_name", row, fmt::format("{} rank {}", way, row / 2)) + ",\n");
  }
  // Always written last, as the last line must have no comma.
  writer.add(name("process_name", 0, fmt::format("rank {} ({})", log.rank, log.transport)));
}

int write_all(const TraceLog& log, int file) {
  Writer writer(file);
  writer.add("[\n");
  for (const TraceEvent& event : log.events) {
    writer.add(
        fmt::format(R"({{"name":"{}","cat":"segment","ph":"X","ts":{:.3f},"dur":{:.3f},)",
                    name_of(event.kind), microseconds(event.asked.time_since_epoch()),
                    microseconds(event.done - event.asked)) +
        fmt::format(R"("pid":{},"tid":{},"args":{{"peer":{},"bytes":{},"waited_us":{:.3f}}}}},)",
                    log.rank, row_of(event), event.peer, event.bytes,
                    microseconds(event.there - event.asked)) +
        "\n");
  }
  write_names(log, writer);
  writer.add("\n]\n");
  return writer.finish();
}

// Gives the file the first free name. Returns 0 or errno.
int take_name(posix::UnnamedFile& file, const std::string& path, int rank) {
  for (int number = 1; number <= kMostFiles; ++number) {
    const std::string name = number == 1 ? fmt::format("{}-rank{}.json", path, rank)
                                         : fmt::format("{}-rank{}.{}.json", path, rank, number);
    const int error = file.link(name);
    if (error != EEXIST) return error;
  }
  return EEXIST;
}

}  // namespace

void TraceLog::add(const TraceEvent& event) {
  if (events.size() < kMostEvents) {
    events.push_back(event);
  } else {
    ++left_out;
  }
}

std::string write_trace(const TraceLog& log, const std::string& path) noexcept {
  try {
    posix::UnnamedFile file(path);
    int error = file.is_open() ? write_all(log, file.get()) : errno;
    if (error == 0) error = take_name(file, path, log.rank);
    if (error == 0) return "";
    return fmt::format("cannot write {}-rank{}.json: {}", path, log.rank, posix::error_text(error));
  } catch (const std::exception& error) {
    return error.what();
  }
}

std::string why_not_writable(const std::string& path) {
  const auto folder = std::filesystem::path(path + "-").parent_path();
  const std::string name = folder.empty() ? "." : folder.string();
  if (::access(name.c_str(), W_OK | X_OK) != 0)
    return fmt::format("{}: {}", name, posix::error_text(errno));
  // access() also succeeds for root in /proc, where no file can be made, so this makes one.
  const posix::UnnamedFile trial(path);
  if (trial.is_open()) return "";
  return fmt::format("cannot make a file in {}: {}", name, posix::error_text(errno));
}

}  // namespace kolo::inline v0::decorators
