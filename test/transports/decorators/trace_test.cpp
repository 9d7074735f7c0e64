// Trace files: complete, one line for each segment, and never in place of another file.
#include "transports/decorators/trace.h"

#include <unistd.h>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <vector>

#include "test/support/catch.h"
#include "test/support/temporary_folder.h"
#include "test/transports/decorators/pair.h"
#include "transports/error.h"

using namespace kolo;
using namespace kolo::test;

namespace {

using Bytes = std::vector<std::byte>;

std::string contents(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::size_t count(const std::string& text, const std::string& word) {
  std::size_t found = 0;
  for (auto at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++found;
  return found;
}

void exchange_a_few(const std::string& path) {
  const Ends ends = make_pair(
      [&path](std::unique_ptr<Transport> inner) { return make_traced(std::move(inner), path); });
  Bytes data(1234);
  for (int i = 0; i < 3; ++i) {
    REQUIRE_FALSE(ends[1]->channel(0).receive(data));
    REQUIRE(ends[0]->channel(1).send(data));
    REQUIRE(ends[1]->channel(0).receive(data));
  }
  REQUIRE(ends[1]->channel(0).reserve(7) != nullptr);
  ends[1]->channel(0).commit();
  REQUIRE(ends[0]->channel(1).view(7) != nullptr);
  ends[0]->channel(1).release();
}

}  // namespace

TEST_CASE("every segment is in the traces of both ranks") {
  const TemporaryFolder folder;
  exchange_a_few(folder / "run");
  const std::string zero = contents(folder / "run-rank0.json");
  const std::string one = contents(folder / "run-rank1.json");
  CHECK(folder.entries() == 2);
  CHECK(count(zero, R"("name":"send")") == 3);
  CHECK(count(zero, R"("name":"receive")") == 1);
  CHECK(count(zero, R"("bytes":1234)") == 3);
  CHECK(count(one, R"("name":"send")") == 1);
  CHECK(count(one, R"("name":"receive")") == 3);
  CHECK(count(one, R"("bytes":7,)") == 1);
  CHECK_THAT(zero, ContainsSubstring(R"("name":"to rank 1")"));
  CHECK_THAT(one, ContainsSubstring(R"x("name":"rank 1 (inproc)","left_out":0)x"));
}

TEST_CASE("a trace is valid JSON") {
  const TemporaryFolder folder;
  exchange_a_few(folder / "run");
  const std::string text = contents(folder / "run-rank0.json");
  CHECK(text.starts_with("[\n{"));
  CHECK(text.ends_with("}\n]\n"));
  CHECK(count(text, ",\n") + 1 == count(text, "\n{"));
  CHECK(count(text, "{") == count(text, "}"));
  CHECK(count(text, "\"") % 2 == 0);
}

TEST_CASE("a trace written before the end is complete, and is written once") {
  const TemporaryFolder folder;
  const Ends ends = make_pair([&](std::unique_ptr<Transport> inner) {
    return make_traced(std::move(inner), folder / "run");
  });
  write_trace_of(*ends[0]);
  CHECK(folder.entries() == 1);
  write_trace_of(*ends[0]);
  CHECK(folder.entries() == 1);
}

TEST_CASE("the error for a trace whose folder is gone names the file") {
  auto folder = std::make_unique<TemporaryFolder>();
  const std::string path = *folder / "run";
  const Ends ends = make_pair(
      [&](std::unique_ptr<Transport> inner) { return make_traced(std::move(inner), path); });
  folder.reset();
  for (int rank = 0; rank < 2; ++rank) {
    try {
      write_trace_of(*ends[static_cast<std::size_t>(rank)]);
      FAIL("nothing was thrown");
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::kSystem);
      CHECK_THAT(error.what(), ContainsSubstring(path + "-rank" + std::to_string(rank) + ".json") &&
                                   ContainsSubstring("No such file"));
    }
  }
}

TEST_CASE("a trace never replaces another one") {
  const TemporaryFolder folder;
  exchange_a_few(folder / "run");
  const std::string first = contents(folder / "run-rank0.json");
  exchange_a_few(folder / "run");
  CHECK(contents(folder / "run-rank0.json") == first);
  CHECK_THAT(contents(folder / "run-rank0.2.json"), ContainsSubstring("send"));
  CHECK(folder.entries() == 4);
}

TEST_CASE("a missing or read-only folder is reported before the run") {
  const TemporaryFolder folder;
  const bool is_there = GENERATE(false, true);
  const std::string path = is_there ? "/proc/run" : folder / "none/run";
  try {
    exchange_a_few(path);
    FAIL("nothing was thrown");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kUnavailable);
    CHECK_THAT(error.what(), ContainsSubstring("KOLO_TRACE=") && ContainsSubstring("No such file"));
  }
}
