// The table of connections that were not made: its text, and the rows of other ranks from the
// store.
#include "collectives/engine/missing_connections.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "collectives/engine/failure_text.h"
#include "collectives/engine/wait_graph.h"
#include "test/support/catch.h"

namespace kolo::test {

namespace {

const Error kTimeout(ErrorCode::kDeadline, 1, "rank 0 timed out");

std::string row_to(int peer) {
  return "no tcp connection to rank " + std::to_string(peer) + " was made, at 10.9.0.9:1 (refused)";
}

std::size_t lines_of(const std::string& text) {
  return static_cast<std::size_t>(std::ranges::count(text, '\n'));
}

}  // namespace

TEST_CASE("the table of missing connections has a line for each row, by rank") {
  const std::vector<std::string> rows = {"2\n" + row_to(1) + "\n" + row_to(2), "",
                                         "1\n" + row_to(0)};
  CHECK(missing_connections_table(rows) == "\nmissing connections:\n  rank 0: " + row_to(1) +
                                               "\n  rank 0: " + row_to(2) +
                                               "\n  rank 2: " + row_to(0));
  CHECK(missing_connections_table(std::vector<std::string>(3)).empty());
}

TEST_CASE("the table of missing connections stays short, and says how many rows it leaves out") {
  std::string of_rank = "300";
  for (int peer = 0; peer < 16; ++peer) of_rank += "\n" + row_to(peer);
  const std::string table = missing_connections_table(std::vector<std::string>(1000, of_rank));
  CHECK(lines_of(table) == 1 + 16 + 1);
  CHECK(table.ends_with("\n  and 299984 more"));
  const std::string long_row =
      missing_connections_table(std::vector<std::string>(100, "1\n" + std::string(100'000, 'x')));
  CHECK(long_row.size() < 3000);
}

TEST_CASE("a table of missing connections is made of any text") {
  for (const char* const text : {"x", "\n\n", "9", "-1\na", "18446744073709551615\na", "1\na; b"})
    CHECK(lines_of(missing_connections_table(std::array<std::string, 2>{text, text})) <= 5);
  CHECK(missing_connections_table(std::array<std::string, 1>{"1\na; b"}) ==
        "\nmissing connections:\n  rank 0: a");
}

TEST_CASE("a timeout collects the missing connections that other ranks have published") {
  const auto store = make_local_store();
  const std::vector<Channel*> no_channels(4);
  CHECK(find_missing_connections(*store, 0, no_channels, kTimeout).empty());
  store->set("awaited/1", "0 2<\n2\n" + row_to(0) + "\n" + row_to(2));
  store->set("awaited/3", "1");
  CHECK(find_missing_connections(*store, 0, no_channels, kTimeout) ==
        "\nmissing connections:\n  rank 1: " + row_to(0) + "\n  rank 1: " + row_to(2));
  CHECK(wait_edges_from(*store->try_get("awaited/1"), 4).size() == 2);
  const Error aborted(ErrorCode::kAborted, 1, "rank 1 aborted");
  CHECK(find_missing_connections(*store, 0, no_channels, aborted).empty());
}

TEST_CASE("a message that names the only missing connection gets no table") {
  const auto store = make_local_store();
  const std::vector<Channel*> no_channels(2);
  store->set("awaited/1", "0\n1\n" + row_to(0));
  const Error failure(ErrorCode::kDeadline, 0, "rank 1 timed out; " + row_to(0) + "; is it alive?");
  CHECK(find_missing_connections(*store, 0, no_channels, failure).empty());
}

TEST_CASE("a failure with a table keeps its code and its rank in the store") {
  const Error failure(
      ErrorCode::kDeadline, 1,
      std::string("late") + missing_connections_table(std::array{"1\n" + row_to(1)}));
  const Error again = failure_from(to_text(failure));
  CHECK(again.code() == ErrorCode::kDeadline);
  CHECK(again.peer() == 1);
  CHECK(std::string(again.what()) == failure.what());
}

}  // namespace kolo::test
