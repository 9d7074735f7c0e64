// Suggestions for misspelled words and for words of other programs.
#include "transports/base/suggestion.h"

#include <string>
#include <vector>

#include "test/support/catch.h"

using namespace kolo;

namespace {

const std::vector<std::string> kTransports = {"inproc", "shm", "tcp"};
const std::vector<std::string> kTypes = {"float32", "float64", "bfloat16", "int32"};

}  // namespace

TEST_CASE(
    "a suggestion allows for one letter inserted, omitted, replaced or swapped with the next") {
  for (const char* mistyped : {"smh", "shn", "sshm", "shm2", "hsm"}) {
    INFO(mistyped);
    CHECK(nearest_word(mistyped, kTransports) == "shm");
  }
  CHECK(nearest_word("inprco", kTransports) == "inproc");
  CHECK(nearest_word("pigeon", kTransports).empty());
  CHECK(nearest_word("hs", kTransports).empty());
  CHECK(nearest_word("", kTransports).empty());
}

TEST_CASE("a suggestion knows other programs' words and the first letters of a word") {
  constexpr Synonym kElsewhere[] = {{"bf16", "bfloat16"}, {"half", "float16"}};
  CHECK(suggested_word("bf16", kTypes, kElsewhere) == "bfloat16");
  CHECK(suggested_word("half", kTypes, kElsewhere).empty());  // there is no float16
  CHECK(suggested_word("float", kTypes) == "float32");
  CHECK(suggested_word("bfl", kTypes) == "bfloat16");
  CHECK(suggested_word("flaot64", kTypes) == "float64");
  CHECK(suggested_word("in", kTypes).empty());
  CHECK(suggested_word("complex", kTypes).empty());
}

TEST_CASE("a suggestion is appended to an error message, or is empty") {
  CHECK(did_you_mean("shm") == "; did you mean shm?");
  CHECK(did_you_mean("").empty());
}
