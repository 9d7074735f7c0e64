// Options of ranks that were started by hand, and may differ.
#include "bench/cli/same_arguments.h"

#include <functional>
#include <stdexcept>

#include "test/support/catch.h"

namespace kolo::bench {
namespace {

std::string objection_to(const std::function<void(Arguments&)>& change) {
  const auto store = make_local_store();
  Arguments arguments;
  arguments.command = "allreduce";
  require_same_arguments(0, arguments, *store);
  change(arguments);
  try {
    require_same_arguments(1, arguments, *store);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("ranks with equal options agree, even if their row files differ") {
  CHECK(objection_to([](Arguments& arguments) { arguments.json = "mine.jsonl"; }).empty());
}

TEST_CASE("an error names an option that differs from that of rank 0, with both values") {
  CHECK(objection_to([](Arguments& arguments) { arguments.problem.type = ElementType::kInt32; }) ==
        "rank 1 was started with other options than rank 0: --type is int32 here and float32 "
        "there");
  CHECK_THAT(objection_to([](Arguments& arguments) { arguments.command = "broadcast"; }),
             ContainsSubstring("the command is broadcast here and allreduce there"));
  CHECK_THAT(objection_to([](Arguments& arguments) { arguments.max_bytes += 4; }),
             ContainsSubstring("--max-bytes is 268435460 here and 268435456 there"));
  CHECK_THAT(objection_to([](Arguments& arguments) { arguments.is_captured = true; }),
             ContainsSubstring("--captured is given here and not given there"));
  CHECK_THAT(objection_to([](Arguments& arguments) { arguments.seconds = 0.25; }),
             ContainsSubstring("--seconds is 0.25 here and 0.5 there"));
  CHECK_THAT(objection_to([](Arguments& arguments) {
               arguments.against = {"gloo", "mpich"};
             }),
             ContainsSubstring("--against is gloo,mpich here and not given there"));
}

}  // namespace kolo::bench
