// Fuzzer of the TCP store's client: its socket receives what the input says.
//
// If that contains no answer to a call, the fake server closes the connection, so that the test
// need not wait for a timeout. note() and ask() wait for no answer; their answers may arrive with
// any later call.
#include <sys/socket.h>
#include <memory>
#include <string>
#include <vector>

#include "test/fuzz/input.h"
#include "test/fuzz/sockets.h"
#include "test/fuzz/store_messages.h"
#include "transports/error.h"
#include "transports/posix/socket.h"
#include "transports/store/tcp_client.h"

using namespace kolo;
using namespace kolo::fuzz;

namespace {

class Server {
 public:
  posix::Descriptor client_end() { return std::move(ends_.theirs); }

  // The data on the socket when the client makes its next call.
  void speak(Input& input, bool needs_no_failure) {
    if (!is_failed_ || !needs_no_failure) ++id_;  // otherwise the client sends no request
    chat(input);
    if (!is_answered_) ::shutdown(ends_.mine.get(), SHUT_WR);
  }

  // The same for a call that does not wait.
  void chat_once_more(Input& input) {
    ++id_;
    chat(input);
  }

  void answer_hello() {
    say(store_wire::encode({store_wire::Kind::kValue, ++id_, store_wire::kVersion, {}, {}}));
  }

  // The client knows of a failure, perhaps its own.
  void note_failure() { is_failed_ = true; }

 private:
  void chat(Input& input) {
    hear_all();
    is_answered_ = false;
    for (unsigned speeches = input.below(4); speeches > 0; --speeches) say(speech_of(input, id_));
  }

  // Sends the text, and records how the client will understand it.
  void say(const std::string& speech) {
    posix::send_some(ends_.mine, speech.data(), speech.size());
    said_ += speech;
    try {
      while (const auto message = store_wire::take(said_)) {
        is_failed_ |= message->kind == store_wire::Kind::kFailed;
        is_answered_ |= message->kind != store_wire::Kind::kFailed &&
                        message->kind != store_wire::Kind::kGoodbye && message->id == id_;
      }
    } catch (const Error&) {
    }
  }

  void hear_all() {
    char bytes[16384];
    while (posix::receive_some(ends_.mine, bytes, sizeof bytes).bytes > 0) {
    }
  }

  Ends ends_;
  std::uint64_t id_ = 0;      // id of the client's latest call
  std::string said_;          // data that are no complete message yet
  bool is_failed_ = false;    // the client knows that the job has failed
  bool is_answered_ = false;  // the latest call has an answer
};

using Answers = std::vector<std::shared_ptr<const Store::Answer>>;

void call(Store& store, Input& input, Server& server, Answers& answers) {
  enum : unsigned { kSet, kTryGet, kGet, kAdd, kPostFailure, kFailure, kJoin, kLeave, kNote, kAsk };
  const unsigned what = input.below_or_rare(kNote, 2);
  const std::string key = input.short_text();
  if (what < 5 || what == kJoin) server.speak(input, what == kGet || what == kPostFailure);
  if (what == kNote || what == kAsk) server.chat_once_more(input);
  switch (what) {
    case kSet:
      return store.set(key, input.short_text());
    case kTryGet:
      return static_cast<void>(store.try_get(key));
    case kGet:
      return static_cast<void>(store.get(key, Clock::now() + std::chrono::seconds(20)));
    case kAdd:
      return static_cast<void>(store.add(key, number_of(input)));
    case kPostFailure:
      static_cast<void>(store.post_failure(key));
      return server.note_failure();
    case kFailure:
      store.silence();
      return static_cast<void>(store.failure());
    case kNote:
      return store.note(key, input.short_text());
    case kAsk:
      answers.push_back(store.ask(key));
      return;
    case kJoin:
      return store.join(static_cast<int>(number_of(input)));
    default:
      return store.leave();
  }
}

// An answer arrives once. If the store has ended, it has arrived.
void require_answers(Store& store, const Answers& answers) {
  store.failure();
  bool is_over = false;
  try {
    store.note("last", "words");
  } catch (const Error&) {
    is_over = true;
  }
  for (const auto& answer : answers) {
    require(answer->has_come || !is_over, "a request to a lost store is answered");
    require(answer->has_come || !answer->value, "there is nothing before the answer has come");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input input(data, size);
  Server server;
  Answers answers;
  if (input.below(8) == 0) {
    server.speak(input, false);
  } else {
    server.answer_hello();
  }
  try {
    std::string why;
    const auto store =
        tcp_store_over(server.client_end(), "fuzz", {Clock::now() + std::chrono::seconds(20)}, why);
    for (int calls = 0; store != nullptr && calls < 32 && !input.is_empty(); ++calls) {
      try {
        call(*store, input, server, answers);
      } catch (const Error& error) {
        require(error.code() == ErrorCode::kAborted || error.code() == ErrorCode::kUnavailable,
                "a store that has ended is an aborted job, or over");
      }
    }
    if (store != nullptr) require_answers(*store, answers);
  } catch (const Error& error) {
    require(error.what()[0] != '\0', "an error says something");
  }
  return 0;
}
