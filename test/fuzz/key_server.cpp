// Fuzzer of a key server's rules: requests with any content, from several workers at once.
//
// An input is a rule, then events: a request of a worker, the arrival of a piece of its gradient,
// or its end. A request that the server accepts must keep the promises of the rule.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "collectives/key_server/message.h"
#include "collectives/key_server/served_key.h"
#include "test/fuzz/input.h"

using namespace kolo;
using namespace kolo::fuzz;
using namespace kolo::key_server;

namespace {

constexpr std::size_t kCount = 3;
constexpr std::size_t kWorkers = 3;

const KeyPlan& plan() {
  static const KeyPlan plan =
      plan_keys(std::vector<KeyRange>{{0, {kCount, kCount}}}, std::vector<int>{0, 1});
  return plan;
}

struct Worker {
  std::size_t arrived = kCount;  // of the gradient in transfer
  bool has_finished = false;
};

Message take_request(Input& input) {
  if (input.below(4) == 0) return input.number<Message>();
  Message message = message_of(MessageKind::kPushPull, plan(), 0);
  message.iteration = input.number<std::int8_t>();
  message.samples = input.below(3);
  return message;
}

struct Game {
  explicit Game(Input& input)
      : options{.consistency = {static_cast<Consistency::Kind>(input.below(4)),
                                static_cast<int>(input.below(kWorkers))},
                .first_iteration = input.below(3)},
        key(0, values, ranks, options, update, statistics) {}

  void request(std::size_t index, const Message& message) {
    Worker& worker = workers[index];
    if (worker.has_finished || worker.arrived < kCount) return;
    if (!fault_of_request(message, plan(), 0).empty() || !has_gradient(message.kind)) return;
    require(message.key == 0 && message.samples >= 0, "a request is of a key of the server");
    if (!key.fault_of_push(index, message.iteration).empty()) return;
    require(message.iteration >= options.first_iteration, "iterations go forwards");
    worker.arrived = 0;
    ++pushes;
    key.begin(index, message.iteration, std::make_shared<float[]>(kCount), message.samples);
  }

  void arrive(std::size_t index) {
    if (workers[index].arrived < kCount) key.arrive(index, ++workers[index].arrived);
  }

  void finish(std::size_t index) {
    if (workers[index].has_finished) return;
    while (workers[index].arrived < kCount) arrive(index);
    workers[index].has_finished = true;
    key.finish(index);
  }

  std::vector<int> ranks = {2, 3, 4};
  std::vector<float> values = std::vector<float>(kCount);
  std::uint64_t pushes = 0;
  KeyUpdateFunction update = [](const KeyUpdate& one) {
    require(one.samples > 0 && one.gradients > 0, "an update has samples");
    require(one.gradient.size() == kCount && one.gradient.data() != nullptr, "it has a gradient");
  };
  KeyServerStatistics statistics;
  KeyServerOptions options;
  std::vector<Worker> workers = std::vector<Worker>(kWorkers);
  ServedKey key;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input input(data, size);
  Game game(input);
  while (!input.is_empty()) {
    const std::size_t index = input.below(kWorkers);
    switch (input.below_or_rare(2, 1)) {
      case 0:
        game.request(index, take_request(input));
        break;
      case 1:
        game.arrive(index);
        break;
      default:
        game.finish(index);
    }
  }
  for (std::size_t index = 0; index < kWorkers; ++index) game.finish(index);
  for (std::size_t index = 0; index < kWorkers; ++index)
    require(game.key.may_answer(index), "when all have finished, every push is answered");
  require(game.statistics.gradients + game.statistics.dropped == game.pushes,
          "every gradient is applied or dropped");
  const Consistency& rule = game.options.consistency;
  require(rule.kind == Consistency::Kind::kBackup || game.statistics.dropped == 0,
          "only backup workers drop gradients");
  const auto bound = static_cast<std::size_t>(rule.bound);
  require(rule.kind != Consistency::Kind::kBounded || game.statistics.lead.size() <= bound + 1,
          "no worker is ahead of the bound");
  return 0;
}
