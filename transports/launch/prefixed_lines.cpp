#include "transports/launch/prefixed_lines.h"

#include <unistd.h>

#include <cerrno>
#include <utility>

namespace kolo::inline v0::launch {
namespace {

constexpr std::size_t kReadBytes = 16 * 1024;  // on the stack, which may be small
constexpr std::size_t kLongestLine =
    256 * 1024;  // longer ones are cut, so that memory stays bounded

}  // namespace

PrefixedLines::PrefixedLines(posix::Descriptor from, Output& to, std::string prefix)
    : from_(std::move(from)), to_(&to), prefix_(std::move(prefix)) {}

PrefixedLines::~PrefixedLines() {
  if (is_open()) write_lines(true);
}

void PrefixedLines::copy() {
  char buffer[kReadBytes];
  while (can_copy()) {
    const ssize_t got = read(from_.get(), buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) break;
    if (got <= 0) {
      write_lines(true);
      from_.close();
      return;
    }
    pending_.append(buffer, static_cast<std::size_t>(got));
    write_lines(false);
    if (static_cast<std::size_t>(got) < sizeof buffer) break;  // the output of other ranks is next
  }
}

void PrefixedLines::write_lines(bool is_last) {
  std::string text;
  std::size_t begin = 0;
  while (begin < pending_.size()) {
    const std::size_t end = pending_.find('\n', begin);
    const bool is_whole = end != std::string::npos;
    if (!is_whole && !is_last && pending_.size() - begin < kLongestLine) break;
    const std::size_t stop = is_whole ? end : pending_.size();
    text.append(prefix_).append(pending_, begin, stop - begin).push_back('\n');
    begin = is_whole ? end + 1 : stop;
  }
  pending_.erase(0, begin);
  to_->add(text);
}

}  // namespace kolo::inline v0::launch
