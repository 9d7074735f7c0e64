#include "transports/conformance/store_clauses.h"

#include <fmt/format.h>
#include <chrono>
#include <exception>
#include <optional>
#include <thread>

#include "transports/error.h"

namespace kolo::inline v0::conformance {

namespace {

using namespace std::chrono_literals;

using Open = std::function<std::shared_ptr<Store>()>;

struct Clause {
  const char* name;
  void (*run)(const Open& open);
};

void expect(bool holds, const std::string& what) {
  if (!holds) throw std::runtime_error(what);
}

std::string text_of(const std::optional<std::string>& value) {
  return value ? "'" + *value + "'" : "no value";
}

Deadline soon() { return Clock::now() + 10s; }

// The error of a call that must fail.
template <typename Body>
Error error_of(const Body& body) {
  try {
    body();
  } catch (const Error& error) {
    return error;
  }
  throw std::runtime_error("a call that must fail returned");
}

// Runs `body` in a thread of its own beside `other`; rethrows what either throws.
void side_by_side(const std::function<void()>& body, const std::function<void()>& other) {
  std::exception_ptr thrown;
  std::thread thread([&] {
    try {
      body();
    } catch (...) {
      thrown = std::current_exception();
    }
  });
  try {
    other();
  } catch (...) {
    thread.join();
    throw;
  }
  thread.join();
  if (thrown) std::rethrow_exception(thrown);
}

void values_reach_other_ranks(const Open& open) {
  const auto a = open(), b = open();
  const auto none = b->try_get("key");
  expect(!none, "try_get() of a key that was not set gave " + text_of(none));
  a->set("key", "value");
  expect(b->get("key", soon()) == "value", "get() gave another value");
  a->set("key", "");
  const auto empty = b->try_get("key");
  expect(empty == "", "after an empty value was set, try_get() gave " + text_of(empty));
  const std::string bytes("a\0b\xff", 4);
  a->set("bytes", bytes);
  expect(b->get("bytes", soon()) == bytes, "a value with the bytes 0 and 255 was changed");
}

void values_have_a_limit(const Open& open) {
  const auto a = open(), b = open();
  const std::string longest(Store::kLongestValue, 'x');
  a->set("longest", longest);
  expect(b->get("longest", soon()) == longest, "a value of kLongestValue bytes was changed");
  try {
    a->set("longer", longest + "x");
  } catch (const std::invalid_argument&) {
    return;
  }
  throw std::runtime_error("set() took a value that is longer than kLongestValue");
}

void get_waits_for_the_key(const Open& open) {
  const auto a = open(), b = open();
  side_by_side([&] { expect(b->get("late", soon()) == "2", "get() gave another value"); },
               [&] {
                 a->set("other", "1");
                 a->set("late", "2");
               });
}

void get_has_a_deadline(const Open& open) {
  const auto a = open();
  const Error error = error_of([&] { a->get("never", Clock::now() + 50ms); });
  expect(error.code() == ErrorCode::kDeadline,
         fmt::format("the error is '{}', not kDeadline", to_string(error.code())));
  expect(std::string_view(error.what()).find("never") != std::string_view::npos,
         fmt::format("the error does not name the key: {}", error.what()));
}

void counters_add_up(const Open& open) {
  const auto a = open(), b = open();
  constexpr int kTimes = 50;
  const auto add = [](Store& store) {
    for (int i = 0; i < kTimes; ++i) store.add("counter", 2);
  };
  side_by_side([&] { add(*a); }, [&] { add(*b); });
  const auto sum = a->add("counter", -1);
  expect(sum == 4 * kTimes - 1, fmt::format("the counter has {}, not {}", sum, 4 * kTimes - 1));
}

void notes_come_before_later_questions(const Open& open) {
  const auto a = open();
  a->note("key", "old");
  a->note("key", "new");
  const auto answer = a->ask("key");
  expect(wait_for_answers(*a, {&answer, 1}, soon()), "ask() had no answer in 10 s");
  expect(answer->value == "new", "ask() after note() gave " + text_of(answer->value));
}

void the_first_failure_wins(const Open& open) {
  const auto a = open(), b = open();
  expect(!a->failure(), "there is a failure in a new job");
  side_by_side(
      [&] {
        const Error error = error_of([&] { b->get("never", soon()); });
        expect(error.code() == ErrorCode::kAborted && std::string(error.what()) == "the first",
               fmt::format("a wait ended with another failure: {}", error.what()));
      },
      [&] {
        const auto first = a->post_failure("the first");
        expect(first == "the first", "the first failure became '" + first + "'");
      });
  const auto second = b->post_failure("the second");
  expect(second == "the first", "a second failure took the place of the first: '" + second + "'");
  const auto known = open()->post_failure("a third");
  expect(known == "the first", "a new rank's store has the failure '" + known + "'");
}

void retired_keys_are_removed(const Open& open) {
  const auto a = open(), b = open();
  a->set("group/1/key", "value");
  a->set("group/10/key", "of another");
  a->retire("group/1/", 2);
  expect(b->get("group/1/key", soon()) == "value", "a key was removed while a rank uses it");
  b->retire("group/1/", 2);
  const auto removed = b->ask("group/1/key");
  expect(wait_for_answers(*b, {&removed, 1}, soon()), "ask() had no answer in 10 s");
  expect(!removed->value, "a key was not removed after all its users had retired it");
  expect(a->try_get("group/10/key").has_value(), "a key of another prefix was removed");
}

constexpr Clause kClauses[] = {
    {"a value reaches other ranks unchanged", values_reach_other_ranks},
    {"a value has at most kLongestValue bytes", values_have_a_limit},
    {"get() waits for the key", get_waits_for_the_key},
    {"get() ends at its deadline and names the key", get_has_a_deadline},
    {"counters add up over ranks and threads", counters_add_up},
    {"the answer of ask() includes an earlier note()", notes_come_before_later_questions},
    {"the first failure wins and ends every wait", the_first_failure_wins},
    {"the keys of a prefix are removed once all users have retired it", retired_keys_are_removed},
};

}  // namespace

std::vector<std::string> failed_store_clauses(const Open& open,
                                              const std::function<void()>& reset) {
  std::vector<std::string> failed;
  for (const Clause& clause : kClauses) {
    try {
      if (reset) reset();
      clause.run(open);
    } catch (const std::exception& error) {
      failed.push_back(fmt::format("{}: {}", clause.name, error.what()));
    }
  }
  return failed;
}

}  // namespace kolo::inline v0::conformance
