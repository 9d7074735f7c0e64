// Gradient options: formats, loss scale, clipping, micro-batches, a program's own exchange.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <map>
#include <numeric>
#include <random>

#include "test/support/catch.h"
#include "test/train/program/small_run.h"
#include "test/train/strategies/tiny_training.h"
#include "train/checkpoint/gradient_state.h"
#include "train/strategies/gradient_update.h"
#include "train/strategies/top_k.h"

namespace {

using namespace kolo;
using namespace kolo::train;
using namespace kolo::test;

constexpr unsigned kRandomSeed = 5;

std::vector<float> random_values(std::size_t count, float scale = 1) {
  std::mt19937 random(kRandomSeed);
  std::uniform_real_distribution<float> value(-scale, scale);
  std::vector<float> values(count);
  for (float& one : values) one = value(random);
  return values;
}

GradientOptions options_of(const std::string& format, double clip_norm = 0) {
  GradientOptions options;
  set_format(options, format);
  options.clip_norm = clip_norm;
  return options;
}

const std::vector<std::string> kSynchronousArms{"ring",
                                                "ring:sync=naive",
                                                "ring:sync=flat",
                                                "ring:sync=overlap",
                                                "ring:sync=fusion",
                                                "tree",
                                                "hierarchical",
                                                "auto",
                                                "ps",
                                                "ps:sharded",
                                                "ps:everywhere",
                                                "ps:split",
                                                "sharded",
                                                "dataparallel"};

}  // namespace

TEST_CASE("gradients are encoded in their own memory with the bits of single conversions") {
  for (const std::size_t count : {1, 7, 1023, 1024, 1025, 5000}) {
    const std::vector<float> values = random_values(count);
    std::vector<float> memory = values;
    const GradientUpdate update(options_of("bfloat16"));
    const Buffer encoded = update.encode(memory);
    REQUIRE(encoded.count == count);
    REQUIRE(encoded.type == ElementType::kBFloat16);
    const auto* const codes = static_cast<const BFloat16*>(encoded.data);
    for (std::size_t i = 0; i < count; ++i) REQUIRE(codes[i].bits == to_bfloat16(values[i]).bits);
    update.decode(memory);
    for (std::size_t i = 0; i < count; ++i) REQUIRE(memory[i] == to_float(to_bfloat16(values[i])));
  }
}

TEST_CASE("the loss scale keeps gradients that float16 alone would lose") {
  std::vector<float> tiny(100, 1e-9F);
  CHECK(to_float(to_float16(1e-9F)) == 0);
  const GradientUpdate update(options_of("float16"));
  update.encode(tiny);
  update.decode(tiny);
  for (const float one : tiny) CHECK(std::abs(one - 1e-9F) < 1e-12F);
}

TEST_CASE(
    "an overflow skips the update and halves the loss scale, kGrowthInterval updates double it") {
  GradientUpdate update(options_of("float16"));
  const auto total = [](double squares) { return squares; };
  std::vector<float> sums{1, std::numeric_limits<float>::infinity()};
  std::span<float> all = sums;
  CHECK_FALSE(update.prepare({&all, 1}, total));
  CHECK(update.statistics().scale == GradientUpdate::kFirstScale / 2);
  CHECK(update.statistics().skipped == 1);
  sums[1] = 1;
  for (std::int64_t i = 1; i < GradientUpdate::kGrowthInterval; ++i)
    REQUIRE(update.prepare({&all, 1}, total));
  CHECK(update.statistics().scale == GradientUpdate::kFirstScale / 2);
  CHECK(update.prepare({&all, 1}, total));
  CHECK(update.statistics().scale == GradientUpdate::kFirstScale);
  sums[1] = std::numeric_limits<float>::quiet_NaN();
  while (update.statistics().scale > GradientUpdate::kLeastScale)
    REQUIRE_FALSE(update.prepare({&all, 1}, total));
  CHECK_THROWS_WITH(update.prepare({&all, 1}, total),
                    ContainsSubstring("take --compress bfloat16"));
}

TEST_CASE("gradients are clipped to the norm, as torch.nn.utils.clip_grad_norm_ does") {
  GradientUpdate update(options_of("none", 2.0));
  std::vector<float> sums{3, 0, 4};  // norm 5
  std::span<float> all = sums;
  const auto total = [](double squares) { return squares; };
  CHECK(update.prepare({&all, 1}, total));
  CHECK(std::abs(sums[0] - 1.2F) < 1e-6F);
  CHECK(std::abs(sums[2] - 1.6F) < 1e-6F);
  CHECK(update.statistics().clipped == 1);
  CHECK(update.prepare({&all, 1}, total));  // the norm is 2 now, or a rounding below
  CHECK(std::abs(sums[0] - 1.2F) < 1e-5F);
  sums[1] = std::numeric_limits<float>::infinity();
  CHECK_THROWS_WITH(update.prepare({&all, 1}, total), ContainsSubstring("training has diverged"));
}

TEST_CASE("every synchronous arm trains with 16-bit gradients to nearly the float32 result") {
  for (const std::string& arm : kSynchronousArms) {
    for (const int workers : {2, 3}) {
      const Result plain = run_training({.arm = arm, .workers = workers});
      for (const std::string format : {"bfloat16", "float16"}) {
        INFO(arm << ", " << workers << " workers, " << format);
        const Result narrow =
            run_training({.arm = arm, .workers = workers, .gradients = options_of(format)});
        CHECK(furthest(plain.values, narrow.values) < (format == "float16" ? 2e-4 : 2e-3));
        CHECK(narrow.values != plain.values);
        CHECK(narrow.updates.skipped == 0);
        // `auto` may choose another algorithm for fewer bytes. Rank 0 of `dataparallel` sends
        // parameters only.
        if (arm == "auto" || arm == "dataparallel") continue;
        CHECK(narrow.sent < plain.sent * (arm == "sharded" ? 0.8 : 0.55));
      }
    }
  }
}

TEST_CASE("every synchronous arm clips as one worker does") {
  const Result alone = run_training({.gradients = options_of("none", 0.3)});
  REQUIRE(alone.updates.clipped > 2);
  CHECK(furthest(alone.values, run_training({}).values) > 1e-3);
  for (const std::string& arm : kSynchronousArms) {
    for (const int workers : {2, 3}) {
      INFO(arm << ", " << workers << " workers");
      const Result clipped =
          run_training({.arm = arm, .workers = workers, .gradients = options_of("none", 0.3)});
      CHECK(furthest(alone.values, clipped.values) < 2e-5);
      CHECK(clipped.updates.clipped == alone.updates.clipped);
    }
  }
}

TEST_CASE("micro-batches give the result of whole batches, and send the same bytes") {
  for (const std::string arm : {"ring", "ring:sync=prioritized", "ps", "sharded"}) {
    for (const int workers : {1, 2, 3}) {
      const Result whole = run_training({.arm = arm, .workers = workers});
      for (const std::int64_t samples : {1, 2}) {
        INFO(arm << ", " << workers << " workers, " << samples);
        const Result parts = run_training({.arm = arm, .workers = workers, .micro_batch = samples});
        CHECK(furthest(whole.values, parts.values) < 2e-5);
        CHECK(parts.sent == whole.sent);
      }
    }
  }
}

TEST_CASE("the largest elements are those of a stable sort by magnitude") {
  for (const std::size_t size : {1, 2, 10, 1000, 4097}) {
    std::vector<float> values = random_values(size, 10);
    for (std::size_t i = 0; i < size; i += 3) values[i] = std::round(values[i]);  // equal ones
    std::vector<std::int32_t> order(size);
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, [&](std::int32_t a, std::int32_t b) {
      return std::abs(values[static_cast<std::size_t>(a)]) >
             std::abs(values[static_cast<std::size_t>(b)]);
    });
    for (const std::size_t count : {std::size_t{0}, std::size_t{1}, size / 3, size, size + 1}) {
      std::vector<std::int32_t> expected(
          order.begin(), order.begin() + static_cast<std::ptrdiff_t>(std::min(count, size)));
      std::ranges::sort(expected);
      INFO(count << " of " << size);
      CHECK(largest_elements(values, count) == expected);
    }
  }
  CHECK(largest_elements(std::vector<float>(9, 0.0F), 4) == std::vector<std::int32_t>{0, 1, 2, 3});
}

TEST_CASE("top_k adds unsent elements to the next gradients") {
  run_ranks(3, "inproc", [](Communicator& communicator) {
    const std::vector<Bucket> buckets{{{0, 100}, 0, 1}};
    TopK top_k(communicator, buckets, 100, 0.1);
    const std::vector<float> gradients = random_values(100);
    std::vector<double> sent(100);
    std::vector<float> sums(100);
    constexpr int kRounds = 200;
    for (int round = 0; round < kRounds; ++round) {
      top_k.exchange(0, gradients).wait();
      top_k.receive(0, sums);
      for (std::size_t i = 0; i < sent.size(); ++i) sent[i] += double{sums[i]};
    }
    double error = 0;  // per round; what waits is a few rounds' gradients
    for (std::size_t i = 0; i < sent.size(); ++i)
      error = std::max(error, std::abs(sent[i] / kRounds - 3 * double{gradients[i]}));
    expect(error < 0.5, "the mean of what was sent is near the sum of the gradients");
    expect(std::ranges::count_if(sums, [](float value) { return value != 0; }) <= 30,
           "each rank sends a tenth of the elements");
  });
}

TEST_CASE("each worker gets its unsent gradients back, or worker 0 the sum if workers changed") {
  run_ranks(3, "inproc", [](Communicator& communicator) {
    const auto rank = static_cast<float>(communicator.rank());
    const std::vector<float> mine{1 + rank, -0.0F, 10 * rank};
    ArenaState state;
    collect_unsent(communicator, mine, state);
    std::vector<float> again(3, 7.0F);
    distribute_unsent(communicator, state, again);
    expect(again == mine && std::signbit(again[1]), "each worker has its own bits again");
    std::optional<Communicator> two = communicator.split(rank < 2 ? 0 : -1);
    if (!two) return;
    distribute_unsent(*two, state, again);
    const std::vector<float> sum{6, 0, 30}, nothing(3);
    expect(again == (rank == 0 ? sum : nothing), "worker 0 has the sum");
    distribute_unsent(*two, {}, again);
    expect(again == nothing, "a checkpoint without unsent gradients gives none");
  });
}

TEST_CASE("an invalid loss scale in a checkpoint is refused by name") {
  const Folder folder;
  const std::string path = folder.text() + "/x.safetensors";
  RunFacts facts{{"loss_scale", "1024"}, {"updates_at_loss_scale", "5"}, {"updates_skipped", "2"}};
  write_checkpoint(path, facts, 1, {});
  run_ranks(1, "inproc", [&](Communicator& communicator) {
    const SafetensorsFile file(path);
    GradientUpdate update(options_of("float16")), exact(options_of("none"));
    for (GradientUpdate* one : {&update, &exact}) restore_loss_scale(communicator, &file, *one);
    expect(update.statistics().scale == 1024 && update.statistics().since_change == 5, "its state");
    expect(update.skipped_of_training() == 2 && update.statistics().skipped == 0, "two earlier");
    expect(exact.statistics().scale == 0 && exact.skipped_of_training() == 2, "without a scale");
    RunFacts again;
    add_loss_scale(again, update);
    expect(again == facts, "the same facts");
  });
  for (const char* name : {"loss_scale", "updates_at_loss_scale", "updates_skipped"}) {
    for (const char* wrong : {"", "x", "-1", "nan", "1e300", "1e-40", "1 "}) {
      RunFacts some = facts;
      some[name] = wrong;
      write_checkpoint(path, some, 1, {});
      CHECK_THROWS_WITH(loss_scale_in(SafetensorsFile(path)),
                        ContainsSubstring(std::string("x.safetensors: '") + name + "' in the"));
    }
  }
}

TEST_CASE("top_k trains, and with all elements it equals the ring") {
  const Result ring = run_training({.arm = "ring", .workers = 3});
  for (const std::string arm : {"ring", "auto", "ring:sync=overlap", "ring:sync=prioritized"}) {
    INFO(arm);
    const Result all = run_training({.arm = arm, .workers = 3, .gradients = options_of("topk:1")});
    CHECK(furthest(all.values, ring.values) < 2e-5);
    const Result part =
        run_training({.arm = arm, .workers = 3, .gradients = options_of("topk:0.1")});
    CHECK(part.sent < 0.45 * ring.sent);
    CHECK(furthest(part.values, ring.values) > 1e-4);
  }
}

TEST_CASE("a program's own exchange replaces that of the arm") {
  const Result ring = run_training({.arm = "ring", .workers = 2});
  std::atomic<int> calls = 0;
  const ExchangeHook hook = [&](Communicator& communicator, std::size_t,
                                std::span<float> gradients) {
    ++calls;
    return communicator.all_reduce_async(gradients, ReduceOp::kSum, {.algorithm = "ring"});
  };
  CHECK(run_training({.arm = "tree", .workers = 2, .hook = hook}).values == ring.values);
  CHECK(calls > 0);
  run_ranks(1, "inproc", [&](Communicator& communicator) {
    tensor::Network network = make_tiny_network(3);
    StrategyContext context{communicator, network.parameters(), 1, kSgd,
                            plan_buckets(network.parameters())};
    context.hook = hook;
    context.gradients = options_of("bfloat16");
    CHECK_THROWS_WITH(make_strategy(Arm{}, context), ContainsSubstring("a hook exchanges float32"));
    for (const std::string arm : {"sharded", "local-sgd:2", "ring:sync=fusion", "dataparallel"})
      CHECK_THROWS_WITH(make_strategy(parse_arms(arm, {}).front(), context),
                        "the arm '" + arm + "' does not use a hook");
  });
}

TEST_CASE("an unknown format is rejected with the text that was given") {
  for (const std::string text : {"", "fp16", "topk", "topk:", "topk:0", "topk:1.5", "topk:x"}) {
    GradientOptions options;
    INFO(text);
    CHECK_THROWS_WITH(set_format(options, text), ContainsSubstring("got '" + text + "'"));
  }
  CHECK(format_text(options_of("topk:0.01")) == "topk:0.01");
}
