// Ranks with different options are reported before the first step.
#include "train/experiment/option_consistency.h"

#include "test/collectives/support/ranks.h"
#include "test/support/catch.h"

namespace {

using namespace kolo;
using namespace kolo::train;

// Runs three ranks; rank 1 gets `words` in addition.
std::vector<std::string> texts_of(const std::vector<std::string>& words) {
  const auto outcomes = test::run_threads(3, [&](int rank, std::shared_ptr<Store> store) {
    CommunicatorOptions how;
    how.transport = "inproc";
    Communicator communicator(rank, 3, std::move(store), how);
    std::vector<std::string> arguments{"train", "--model", "small", "--ranks", "3"};
    if (rank == 1) arguments.insert(arguments.end(), words.begin(), words.end());
    require_equal_options(parse_options(arguments).options, communicator);
  });
  std::vector<std::string> texts;
  for (const auto& outcome : outcomes) texts.push_back(outcome.text);
  return texts;
}

}  // namespace

TEST_CASE("ranks with the same flags agree") {
  for (const std::string& text : texts_of({})) CHECK(text.empty());
}

TEST_CASE("a rank with another flag value is reported on every rank, with the flag") {
  const std::vector<std::vector<std::string>> differences{{"--seed", "2"},
                                                          {"--momentum", "0.8"},
                                                          {"--batch-size", "7"},
                                                          {"--epochs", "3"},
                                                          {"--hash-every", "3"},
                                                          {"--lr", "0.5"},
                                                          {"--steps", "9"},
                                                          {"--eval-every", "2"},
                                                          {"--train-size", "100"},
                                                          {"--bucket-bytes", "1000"},
                                                          {"--straggle", "rank=0,factor=2"}};
  for (const auto& difference : differences) {
    for (const std::string& text : texts_of(difference)) {
      CHECK_THAT(text, ContainsSubstring("rank 1 was given a different"));
      CHECK_THAT(text, ContainsSubstring(difference.front()));
    }
  }
}
