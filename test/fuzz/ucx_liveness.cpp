// Fuzzer of ucx liveness, by which ranks watch one another on unix sockets: messages at a rank's
// listener until the rank parts, and messages from the process that a rank watches.
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "test/fuzz/input.h"
#include "transports/posix/unix_socket.h"
#include "transports/ucx/liveness.h"

using namespace kolo;
using namespace kolo::fuzz;
using ucx::Farewell;
using ucx::HostLiveness;

namespace {

constexpr std::uint32_t kToken = 7;

std::string text_of(const Farewell& farewell) {
  return std::string(as_text(std::as_bytes(std::span(&farewell, 1))));
}

Farewell farewell_of(Input& input) {
  return {input.below(2) == 0 ? kToken : input.number<std::uint32_t>(), input.below(3),
          input.number<std::uint32_t>(), input.number<std::uint32_t>()};
}

// Some are a farewell or nearly one.
std::string speech_of(Input& input) {
  std::string text = text_of(farewell_of(input));
  const unsigned flaw = input.below(4);
  if (flaw == 1) text.resize(input.below(sizeof(Farewell)));
  if (flaw == 2) text += input.short_text();
  if (flaw == 3) text = input.short_text();
  return text.empty() ? "x" : text;  // an empty message would mean the end
}

void say(const posix::Descriptor& socket, const std::string& text, bool passes) {
  posix::send_message(socket.get(), std::as_bytes(std::span(text)), passes ? socket.get() : -1);
}

// The first message, if it is that of a watcher.
std::optional<Farewell> first_of(const std::string& speech) {
  if (speech.size() != sizeof(Farewell)) return std::nullopt;
  Farewell said;
  std::memcpy(&said, speech.data(), sizeof said);
  return said;
}

// All waiting connections send something, then the rank parts.
void part(Input& input) {
  posix::Epoll epoll;
  HostLiveness watched(2, epoll);
  std::vector<posix::Descriptor> waiting;
  std::vector<std::string> speeches;
  while (!input.is_empty() && waiting.size() < 8) {
    waiting.push_back(posix::connect_unix(watched.name()).value());
    speeches.push_back(speech_of(input));
    say(waiting.back(), speeches.back(), input.below(2) == 0);
    if (input.below(2) == 0) say(waiting.back(), speech_of(input), false);
  }
  watched.part([](const Farewell& who) -> std::optional<Farewell> {
    return who.token == kToken ? std::optional(Farewell{8, who.rank, who.taken, who.sent})
                               : std::nullopt;
  });
  for (std::size_t i = 0; i < waiting.size(); ++i) {
    Farewell heard;
    const auto message =
        posix::receive_message(waiting[i].get(), std::as_writable_bytes(std::span(&heard, 1)));
    const auto said = first_of(speeches[i]);
    const bool is_watcher = said && said->token == kToken;
    require((message.what == posix::Received::kMessage) == is_watcher,
            "a farewell goes to all watchers and to no other client");
    if (is_watcher)
      require(heard.sent == said->taken && heard.taken == said->sent,
              "the farewell carries the watcher's own counts");
  }
}

// The watched process sends messages, then closes.
void watch(Input& input) {
  posix::Epoll epoll;
  HostLiveness watcher(2, epoll);
  posix::UnixListener place(4);
  require(watcher.watch(1, place.name(), {kToken, 0, 0, 0}), "there is room");
  auto line = place.accept();
  require(line.has_value(), "watching connects to the watched process");
  for (int i = 0; i < 8 && !input.is_empty(); ++i) {
    const std::string speech = speech_of(input);
    say(*line, speech, input.below(2) == 0);
    const auto news = watcher.hear(1);
    const auto said = first_of(speech);
    require(news.farewell.has_value() == said.has_value(), "a farewell is one, and nothing else");
    require(!said || text_of(*news.farewell) == speech, "it is heard as it was said");
    require(!news.is_end, "what is said is no end");
  }
  line.reset();
  require(watcher.hear(1).is_end, "an end is one");
  require(!watcher.is_alive(1), "an ended process is not alive");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input input(data, size);
  if (input.number<char>() == 'w') {
    watch(input);
  } else {
    part(input);
  }
  return 0;
}
