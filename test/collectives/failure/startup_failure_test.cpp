// Startup errors: if one rank cannot make its communicator, the waiting ranks get the cause.
#include <chrono>
#include <memory>
#include <new>
#include <string>

#include "test/collectives/support/ranks.h"
#include "test/support/catch.h"
#include "test/transports/store/forwarding_store.h"

namespace kolo::test {
namespace {

using namespace std::chrono_literals;

struct Mistake {
  const char* name;
  void (*make)(CommunicatorOptions& options);
  const char* said;
};

const Mistake kMistakes[] = {
    {"a transport", [](CommunicatorOptions& options) { options.transport = "pigeons"; }, "pigeons"},
    {"a library", [](CommunicatorOptions& options) { options.transport = "./none.so"; }, "none.so"},
    {"a timeline",
     [](CommunicatorOptions& options) { options.timeline = "/no/such/folder/t.json"; },
     "/no/such/folder/"},
    {"a host's name", [](CommunicatorOptions& options) { options.host_id = "two words"; },
     "a host cannot be called 'two words'"},
    {"a timeout", [](CommunicatorOptions& options) { options.timeout = -1ms; },
     "a timeout of -1 ms"},
};

// A store in which one rank cannot write its placement: out of memory, or an exception that is no
// std::exception.
class NoRoomFor final : public ForwardingStore {
 public:
  NoRoomFor(int rank, bool is_of_memory)
      : key_("placement/" + std::to_string(rank)), is_of_memory_(is_of_memory) {}

  void set(std::string_view key, std::string_view value) override {
    if (!key.ends_with(key_)) return ForwardingStore::set(key, value);
    if (is_of_memory_) throw std::bad_alloc();
    throw key_;
  }

 private:
  const std::string key_;
  const bool is_of_memory_;
};

}  // namespace

TEST_CASE("a startup error of one rank reaches the others at once, with its rank") {
  const auto wrong = GENERATE(0, 1);
  for (const Mistake& mistake : kMistakes) {
    const auto outcomes = run_threads(3, [&](int rank, const std::shared_ptr<Store>& store) {
      CommunicatorOptions options;
      options.timeout = 60s;
      if (rank == wrong) mistake.make(options);
      const Communicator communicator(rank, 3, store, options);
    });
    for (int rank = 0; rank < 3; ++rank) {
      const RankOutcome& outcome = outcomes[static_cast<std::size_t>(rank)];
      INFO(mistake.name << ", rank " << rank << ": " << outcome.text);
      CHECK_THAT(outcome.text, ContainsSubstring(mistake.said));
      CHECK(outcome.is_bug == (rank == wrong));
      if (rank == wrong) continue;
      CHECK(outcome.code == ErrorCode::kAborted);
      CHECK_THAT(outcome.text, Catch::Matchers::StartsWith("rank " + std::to_string(wrong) + " ("));
    }
  }
}

TEST_CASE("a rank that runs out of memory at startup tells the others, whatever is thrown") {
  const auto wrong = GENERATE(0, 1);
  const bool is_of_memory = GENERATE(true, false);
  const auto store = std::make_shared<NoRoomFor>(wrong, is_of_memory);
  const auto outcomes = run_threads(2, [&](int rank, const std::shared_ptr<Store>&) {
    CommunicatorOptions options;
    options.timeout = 60s;
    try {
      const Communicator communicator(rank, 2, store, options);
    } catch (const std::string& key) {
      throw std::runtime_error(key);
    }
  });
  const RankOutcome& own = outcomes[static_cast<std::size_t>(wrong)];
  const RankOutcome& other = outcomes[static_cast<std::size_t>(1 - wrong)];
  INFO(own.text << '\n' << other.text);
  CHECK(!own.code.has_value());
  CHECK(other.code == (is_of_memory ? ErrorCode::kOutOfMemory : ErrorCode::kAborted));
  CHECK_THAT(other.text,
             Catch::Matchers::StartsWith("rank " + std::to_string(wrong) + " (") &&
                 ContainsSubstring(is_of_memory ? "out of memory" : "not a std::exception"));
}

}  // namespace kolo::test
