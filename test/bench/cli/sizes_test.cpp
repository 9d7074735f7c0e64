// Sizes with units, as users write them and as tables print them.
#include "bench/cli/sizes.h"

#include <stdexcept>

#include "test/support/catch.h"

using namespace kolo::bench;

TEST_CASE("sizes are read with their usual units") {
  REQUIRE(parse_bytes("0") == 0);
  REQUIRE(parse_bytes("8") == 8);
  REQUIRE(parse_bytes("8B") == 8);
  REQUIRE(parse_bytes("32K") == 32 * 1024);
  REQUIRE(parse_bytes("32k") == 32 * 1024);
  REQUIRE(parse_bytes("32KiB") == 32 * 1024);
  REQUIRE(parse_bytes("256M") == std::size_t{256} << 20);
  REQUIRE(parse_bytes("1GiB") == std::size_t{1} << 30);
}

namespace {

std::string complaint_about(const char* text) {
  try {
    parse_bytes(text);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("an invalid size is refused and quoted") {
  const auto text = GENERATE("", "K", "KB", "12X", "-1", "1.5M", "8 8", "99999999999999999999",
                             "99999999999G", "8BB", "1MBB");
  std::string quoted = "'";
  quoted.append(text).append("'");
  const std::string complaint = complaint_about(text);
  INFO(complaint);
  REQUIRE(complaint.find(quoted) != std::string::npos);
}

TEST_CASE("an ambiguous unit is refused, with the two unambiguous ones") {
  CHECK(complaint_about("1MB") ==
        "'1MB' may mean powers of 1000 or of 1024: write 1M (or 1MiB) for powers of 1024, or the "
        "number of bytes");
  CHECK(complaint_about("64kb").find("write 64K (or 64KiB)") != std::string::npos);
  CHECK(complaint_about("2Gb").find("write 2G (or 2GiB)") != std::string::npos);
}

TEST_CASE("decimal sizes are powers of 1000, as in guides") {
  CHECK(parse_decimal_bytes("1M") == 1'000'000);
  CHECK(parse_decimal_bytes("64KB") == 64'000);
  CHECK(parse_decimal_bytes("1g") == 1'000'000'000);
  CHECK(parse_decimal_bytes("7") == 7);
  CHECK(format_decimal_bytes(1'000'000'000) == "1 GB");
  CHECK(format_decimal_bytes(1'500'000) == "1500 KB");
  CHECK(format_decimal_bytes(1004) == "1004 B");
  const auto text = GENERATE("", "M", "1MiB", "1Ki", "1.5M", "-1", "1BB", "99999999999999999999G");
  CHECK_THROWS_AS(parse_decimal_bytes(text), std::invalid_argument);
}

TEST_CASE("sizes are printed with the unit that keeps them short") {
  REQUIRE(format_bytes(0) == "0 B");
  REQUIRE(format_bytes(1023) == "1023 B");
  REQUIRE(format_bytes(32 * 1024) == "32 KiB");
  REQUIRE(format_bytes(1536 * 1024) == "1.5 MiB");
  REQUIRE(format_bytes(std::size_t{5} << 30) == "5 GiB");
  REQUIRE(format_bytes(32 * 1024 + 4) == "32.0 KiB");  // not "32 KiB", which would be another size
  REQUIRE(format_bytes(1023 * 1024) == "1023 KiB");
  REQUIRE(format_bytes(1024 * 1024 - 4) == "1.0 MiB");
  REQUIRE(format_bytes((std::size_t{3} << 40) + 1) == "3072.0 GiB");
}

TEST_CASE("a count of one is singular, all others are plural") {
  REQUIRE(format_count(1, "rank") == "1 rank");
  REQUIRE(format_count(0, "rank") == "0 ranks");
  REQUIRE(format_count(2, "rank") == "2 ranks");
}

TEST_CASE("a sweep holds its smallest and its largest size, each once") {
  REQUIRE(sweep(8, 64, 2, 4) == std::vector<std::size_t>{8, 16, 32, 64});
  REQUIRE(sweep(8, 100, 4, 4) == std::vector<std::size_t>{8, 32, 100});
  REQUIRE(sweep(64, 64, 2, 4) == std::vector<std::size_t>{64});
  REQUIRE(sweep(0, 16, 2, 8) == std::vector<std::size_t>{0, 8, 16});
}

TEST_CASE("the measured size is the whole pieces that fit, at least one") {
  REQUIRE(whole(7, 4) == 4);
  REQUIRE(whole(8, 4) == 8);
  REQUIRE(whole(3, 4) == 4);
  REQUIRE(whole(0, 4) == 0);
  REQUIRE(whole(std::size_t{1} << 40, 12) == (std::size_t{1} << 40) / 12 * 12);
}

TEST_CASE("a sweep's sizes are whole elements") {
  REQUIRE(sweep(1, 30, 3, 8) == std::vector<std::size_t>{8, 24});
  REQUIRE(sweep(8, 8, 2, 16) == std::vector<std::size_t>{16});
  REQUIRE(steps(1, 30, 3, 8) == std::vector<std::size_t>{1, 3, 9, 27, 30});
  REQUIRE(steps(0, 16, 2, 8) == std::vector<std::size_t>{0, 8, 16});
  for (const std::size_t bytes : sweep(7, 1000, 3, 8)) REQUIRE(bytes % 8 == 0);
}

TEST_CASE("a sweep that would never end or has no size is refused") {
  REQUIRE_THROWS_AS(sweep(64, 8, 2, 4), std::invalid_argument);
  REQUIRE_THROWS_AS(sweep(8, 64, 1, 4), std::invalid_argument);
}
