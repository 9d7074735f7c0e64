// Failures of user reduce functions: invalid reducers, reducers that differ between ranks, and
// functions that throw.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "collectives/user_reduce_op.h"
#include "test/collectives/support/ranks.h"
#include "test/support/catch.h"

namespace kolo::test {
namespace {

CommunicatorOptions short_segments() {
  CommunicatorOptions options;
  options.segment_bytes = 1024;
  return options;
}

using Long = std::vector<std::byte>;

// A reducer of elements of `bytes` bytes that returns the left operand.
UserReduceOp left_of(std::size_t bytes) {
  UserReduceOp reducer;
  reducer.element_bytes = bytes;
  reducer.combine = [bytes](void* out, const void* left, const void*, std::size_t count) {
    if (out != left) std::memcpy(out, left, bytes * count);
  };
  reducer.is_commutative = false;
  return reducer;
}

struct Mistake {
  UserReduceOp reducer;
  std::string_view algorithm;
  std::string said;
};

std::vector<Mistake> mistakes() {
  UserReduceOp empty = left_of(4);
  empty.combine = nullptr;
  return {
      {empty, "", "all_reduce: the reducer has no function"},
      {left_of(0), "", "elements have 0 bytes; 1 to 65535"},
      {left_of(70'000), "", "elements have 70000 bytes; 1 to 65535"},
      {left_of(4), "ring",
       "algorithm 'ring' does not combine the operands in the order of the ranks, which a reducer "
       "that does not commute needs; use one of: recursive_doubling, two_shot, one_shot, "
       "recursive_multiplying"},
      {left_of(4), "rnig", "no algorithm 'rnig'"}};
}

}  // namespace

TEST_CASE("an invalid reducer is refused before anything is sent") {
  run_ranks(2, "inproc", [](Communicator& communicator) {
    Long data(8);
    for (const Mistake& mistake : mistakes()) {
      const RankOutcome outcome = outcome_of([&] {
        communicator.all_reduce({data.data(), 1, mistake.reducer}, mistake.reducer,
                                {.algorithm = mistake.algorithm});
      });
      expect(outcome.is_bug && outcome.text.find(mistake.said) != std::string::npos, outcome.text);
      communicator.barrier();
    }
    expect(outcome_of([&] {
             communicator.all_reduce({data.data(), 1, ElementType::kInt32}, ReduceOp::kUser);
           }).is_bug,
           "no reducer");
  });
}

TEST_CASE("an element may exceed the requested segment length, but not the actual one") {
  ::setenv("KOLO_SEGMENT_BYTES", "4096", 1);
  const auto transport = GENERATE(from_range(transports_under_test()));
  run_ranks(
      3, transport,
      [](Communicator& communicator) {
        for (const std::size_t bytes : std::initializer_list<std::size_t>{1000, 4096}) {
          Long data(bytes * 3, static_cast<std::byte>(communicator.rank() + 1));
          communicator.all_reduce({data.data(), 3, left_of(bytes)}, left_of(bytes));
          expect(data == Long(bytes * 3, std::byte{1}), "the left one's");
        }
        Long data(3 * 4097);
        for (const bool is_persistent : {false, true}) {
          const RankOutcome outcome = outcome_of([&] {
            communicator.all_reduce_async({data.data(), 3, left_of(4097)}, left_of(4097),
                                          {.is_persistent = is_persistent});
          });
          expect(outcome.is_bug, outcome.text);
          expect(outcome.text.find("an element of 4097 bytes is longer than the 4096 bytes") == 0,
                 outcome.text);
        }
        communicator.barrier();
      },
      short_segments());
  ::unsetenv("KOLO_SEGMENT_BYTES");
}

TEST_CASE("ranks with different reducers are an error that names both") {
  const auto transport = GENERATE(from_range(transports_under_test()));
  struct Other {
    std::size_t bytes;
    std::uint16_t tag;
    std::string said;
  };
  for (const Other& other : {Other{12, 7,
                                   "rank 1 called all_reduce #0 of 6 elements of 12 bytes "
                                   "by user function 7, rank 0 called all_reduce #0 of 6 "
                                   "elements of 12 bytes by user function 3"},
                             Other{24, 3, "elements of 24 bytes"}, Other{1, 3, "uint8"}}) {
    const auto outcomes = run_threads(2, [&](int rank, const std::shared_ptr<Store>& store) {
      CommunicatorOptions options;
      options.transport = transport;
      Communicator communicator(rank, 2, store, options);
      Long data(6 * 24);
      UserReduceOp reducer = left_of(rank == 0 ? 12 : other.bytes);
      reducer.tag = rank == 0 ? 3 : other.tag;
      if (rank == 1 && other.bytes == 1) {
        communicator.all_reduce({data.data(), 6, ElementType::kUint8}, ReduceOp::kSum);
      } else {
        communicator.all_reduce({data.data(), 6, reducer}, reducer);
      }
      communicator.barrier();
    });
    for (const RankOutcome& outcome : outcomes) {
      INFO(outcome.text);
      REQUIRE(outcome.code == ErrorCode::kMismatch);
      REQUIRE(outcome.text == outcomes[0].text);
    }
    const bool is_said = outcomes[0].text.find(other.said) != std::string::npos ||
                         outcomes[0].text.find("rank 0 called") < outcomes[0].text.find("rank 1");
    INFO(outcomes[0].text);
    REQUIRE(is_said);
  }
}

namespace {

// On rank 1 the second call throws, at the second segment.
UserReduceOp throwing(int rank, bool is_exception) {
  UserReduceOp reducer = make_user_reduce_op<int>([](int one, int other) { return one + other; });
  const auto calls = std::make_shared<int>(0);
  reducer.combine = [=, sum = reducer.combine](void* out, const void* left, const void* right,
                                               std::size_t count) {
    if (rank == 1 && ++*calls == 2) {
      if (is_exception) throw std::runtime_error("a negative mass");
      throw 42;
    }
    sum(out, left, right, count);
  };
  return reducer;
}

enum class Form { kBlocking, kAsynchronous, kPersistent };

void run_to_throw(Communicator& communicator, Form form, std::string_view algorithm,
                  bool is_exception) {
  std::vector<int> data(5000, 1);
  const UserReduceOp reducer = throwing(communicator.rank(), is_exception);
  communicator.barrier();
  if (form == Form::kBlocking) {
    communicator.all_reduce({data.data(), data.size(), reducer}, reducer, {.algorithm = algorithm});
  } else {
    const bool is_persistent = form == Form::kPersistent;
    Work work =
        communicator.all_reduce_async({data.data(), data.size(), reducer}, reducer,
                                      {.algorithm = algorithm, .is_persistent = is_persistent});
    Work after = communicator.barrier_async();
    if (is_persistent) {
      after.wait();
      work.start();
    }
    work.wait();
  }
  communicator.barrier();  // a rank that finished before the other failed gets the error here
}

}  // namespace

TEST_CASE("a user function that throws ends the operation on all ranks with its text") {
  const auto transport = GENERATE(from_range(transports_under_test()));
  const auto form = GENERATE(from_range(all_or_few<Form>(
      {Form::kBlocking, Form::kAsynchronous, Form::kPersistent}, {Form::kPersistent})));
  const auto has_thread = GENERATE(false, true);
  for (const std::string_view algorithm : algorithm_names(Collective::kAllReduce)) {
    const bool is_exception = algorithm != "one_shot";
    INFO(transport << " " << algorithm << ", form " << static_cast<int>(form));
    const auto outcomes = run_threads(4, [&](int rank, const std::shared_ptr<Store>& store) {
      CommunicatorOptions options = short_segments();
      options.transport = transport;
      options.progress_thread = has_thread;
      Communicator communicator(rank, 4, store, options);
      const RankOutcome first =
          outcome_of([&] { run_to_throw(communicator, form, algorithm, is_exception); });
      const RankOutcome again = outcome_of([&] { communicator.barrier(); });
      expect(first.text == again.text, "poisoned with the same cause, not: " + again.text);
      communicator.barrier();
    });
    for (const RankOutcome& outcome : outcomes) {
      INFO(outcome.text);
      REQUIRE(outcome.code == ErrorCode::kAborted);
      REQUIRE(outcome.text.find("rank 1 (") == 0);
      REQUIRE(outcome.text.find(is_exception
                                    ? "the user function threw: a negative mass (in "
                                      "all_reduce #"
                                    : "the user function threw an exception that is not a "
                                      "std::exception (in all_reduce #") != std::string::npos);
      REQUIRE(outcome.text.find(std::string(algorithm) + " step") != std::string::npos);
    }
  }
}

TEST_CASE("an update that throws something other than an exception ends the job too") {
  const auto outcomes = run_threads(2, [](int rank, const std::shared_ptr<Store>& store) {
    Communicator communicator(rank, 2, store);
    int value = 1;
    communicator.push_pull({&value, 1, ElementType::kInt32}, {&value, 1, ElementType::kInt32},
                           ReduceOp::kSum, {.everywhere = true, .servers = {}},
                           [](std::size_t, std::span<std::byte>) { throw 42; });
  });
  for (const RankOutcome& outcome : outcomes) {
    INFO(outcome.text);
    REQUIRE(outcome.code == ErrorCode::kAborted);
    REQUIRE(outcome.text.find(
                "an exception was thrown that is not a std::exception (in push_pull #0") !=
            std::string::npos);
  }
}

TEST_CASE("a user function that would wait for its own operation is refused") {
  const auto outcomes = run_threads(2, [](int rank, const std::shared_ptr<Store>& store) {
    Communicator communicator(rank, 2, store);
    int value = 1;
    const UserReduceOp reducer = make_user_reduce_op<int>([&](int one, int other) {
      communicator.barrier();
      return one + other;
    });
    communicator.all_reduce({&value, 1, reducer}, reducer);
    communicator.barrier();
  });
  for (const RankOutcome& outcome : outcomes) {
    INFO(outcome.text);
    REQUIRE(outcome.code == ErrorCode::kAborted);
    REQUIRE(outcome.text.find("would wait for itself") != std::string::npos);
  }
}

}  // namespace kolo::test
