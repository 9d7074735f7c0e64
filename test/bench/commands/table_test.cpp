// kolo-bench table: its points, how long they are measured, and when memory is too small.
#include "bench/commands/table.h"

#include "bench/output/job_progress.h"
#include "test/support/catch.h"

using namespace kolo::bench;

TEST_CASE("points are in the order of the table: transport, ranks, size") {
  const std::vector<TableKey> keys = keys_of({{2, 4}, {1000, 2000}, {"shm", "tcp"}, {}, 0, 60, ""});
  REQUIRE(keys.size() == 8);
  CHECK(keys[1] == TableKey{"shm", 2, 2000});
  CHECK(keys[2] == TableKey{"shm", 4, 1000});
  CHECK(keys[7] == TableKey{"tcp", 4, 2000});
  CHECK(to_string(keys[7]) == "4 ranks over tcp, 2 KB");
}

TEST_CASE("large sizes have fewer iterations, at least four in two passes") {
  CHECK(turns_of(1'000'000, 0).iterations == 100);
  CHECK(turns_of(10'000'000, 0).iterations == 40);
  CHECK(turns_of(100'000'000, 0).iterations == 8);
  CHECK(turns_of(1'000'000'000, 0).iterations == 4);
  CHECK(turns_of(1'000'000'000, 0).passes == 2);
  CHECK(turns_of(1'000'000'000, 3).iterations == 3);
  CHECK(turns_of(1'000'000'000, 3).passes == 3);
}

TEST_CASE("a point needs the buffers of its ranks twice") {
  const TableKey key{"shm", 6, 1'000'000'000};
  CHECK(why_no_memory(key, 12'000'000'000).empty());
  CHECK(why_no_memory(key, 11'900'000'000) ==
        "memory is too small: 2 buffers of 1 GB for each of 6 ranks need 12.0 GB, and 11.9 GB are "
        "available");
}

TEST_CASE("the time left follows the weights of the jobs") {
  std::FILE* out = std::tmpfile();
  JobProgress progress(out, {1, 100, 1, 8});
  CHECK(progress.seconds_left(5) < 0);
  progress.end("a", "done");
  progress.skip("b", "too large");
  CHECK(progress.seconds_left(5) == Approx(45));
  progress.end("c", "done");
  CHECK(progress.seconds_left(10) == Approx(40));
  progress.end("d", "done");
  CHECK(progress.seconds_left(50) == Approx(0));
  std::fclose(out);
  CHECK(time_left_text(-1).empty());
  CHECK(time_left_text(185) == "3:05 left");
  CHECK(time_left_text(3730) == "1:02:10 left");
}
