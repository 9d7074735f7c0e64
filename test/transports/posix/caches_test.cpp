// The last-level caches as the kernel reports them, a rank's share of them, and streaming copies
// that bypass them.
#include "transports/posix/host/caches.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "test/support/catch.h"
#include "test/support/temporary_folder.h"
#include "transports/base/topology.h"
#include "transports/posix/host/streaming_copy.h"

namespace kolo::test {
namespace {

using Cores = std::vector<int>;
using Sizes = std::vector<std::size_t>;

// A temporary folder like the kernel's.
class Machine {
 public:
  std::string folder() const { return folder_.path().string(); }

  void add(int core, int index, const std::string& level, const std::string& type,
           const std::string& size, const std::string& cores) const {
    const std::string cache =
        folder() + "/cpu" + std::to_string(core) + "/cache/index" + std::to_string(index);
    std::filesystem::create_directories(cache);
    std::ofstream(cache + "/level") << level << '\n';
    std::ofstream(cache + "/type") << type << '\n';
    std::ofstream(cache + "/size") << size << '\n';
    std::ofstream(cache + "/shared_cpu_list") << cores << '\n';
  }

 private:
  TemporaryFolder folder_;
};

}  // namespace

TEST_CASE("core lists are parsed, and anything else is rejected") {
  CHECK(posix::parse_cores("0") == Cores{0});
  CHECK(posix::parse_cores("0-3,8,10-11") == Cores{0, 1, 2, 3, 8, 10, 11});
  for (const char* text : {"", "x", "1-", "3-1", "1,", "1;2", "-1", "0-99999999999"}) {
    INFO(text);
    CHECK(posix::parse_cores(text).empty());
  }
}

TEST_CASE(
    "the highest cache level is used, and each cache counts once for the cores that share it") {
  const Machine machine;
  for (const int core : {0, 1, 2}) {
    machine.add(core, 0, "1", "Data", "32K", std::to_string(core));
    machine.add(core, 1, "1", "Instruction", "32K", std::to_string(core));
    machine.add(core, 2, "2", "Unified", "1024K", std::to_string(core));
    machine.add(core, 3, "3", "Unified", core < 2 ? "32768K" : "16M", core < 2 ? "0-1" : "2-3");
  }
  machine.add(4, 0, "1", "Data", "many", "4");
  const auto caches = posix::last_level_caches({0, 1, 2, 4, 5}, machine.folder());
  REQUIRE(caches.size() == 2);
  CHECK((caches[0].bytes == std::size_t{32} << 20 && caches[0].cores == Cores{0, 1}));
  CHECK((caches[1].bytes == std::size_t{16} << 20 && caches[1].cores == Cores{2, 3}));
  CHECK(posix::last_level_caches({0}, machine.folder() + "/nowhere").empty());
}

TEST_CASE("ranks share the caches of the cores over which they are spread") {
  const std::vector<posix::Cache> one = {{32, {0, 1, 2, 3}}};
  const std::vector<posix::Cache> two = {{32, {0, 1}}, {32, {2, 3}}};
  CHECK(posix::share_of_caches(one, {0, 1}, 1) == 32);
  CHECK(posix::share_of_caches(one, {0, 1}, 2) == 16);
  CHECK(posix::share_of_caches(one, {0, 1}, 8) == 4);
  CHECK(posix::share_of_caches(two, {0, 1, 2, 3}, 1) == 32);
  CHECK(posix::share_of_caches(two, {0, 1, 2, 3}, 2) == 32);
  CHECK(posix::share_of_caches(two, {0, 1, 2, 3}, 3) == 16);
  CHECK(posix::share_of_caches(two, {0, 1, 2, 3}, 4) == 16);
  // The process is bound to the cores of one cache, and others use the rest.
  CHECK(posix::share_of_caches({two[0]}, {0, 1, 2, 3}, 4) == 16);
  CHECK(posix::share_of_caches({}, {0, 1}, 2) == 0);
}

TEST_CASE("a rank alone has at least as much cache as one of many") {
  const std::string place = describe_location();
  const auto alone = topology_from({place}, 0);
  const auto oversubscribed = topology_from(std::vector<std::string>(64, place), 63);
  CHECK(oversubscribed.cache_bytes > 0);
  CHECK(alone.cache_bytes >= oversubscribed.cache_bytes);
}

TEST_CASE("a streaming copy copies exactly its bytes, at any alignment") {
  constexpr std::size_t kRoom = 512;
  std::vector<std::byte> from(kRoom);
  for (std::size_t i = 0; i < kRoom; ++i) from[i] = static_cast<std::byte>(1 + i % 251);
  for (const std::size_t bytes : Sizes{0, 1, 15, 16, 63, 64, 65, 127, 128, 200, 256}) {
    for (std::size_t to_begin = 1; to_begin <= 66; ++to_begin) {
      for (const std::size_t from_begin : Sizes{0, 1, 16, 40}) {
        std::vector<std::byte> to(kRoom);
        std::vector<std::byte> expected(kRoom);
        std::copy_n(from.begin() + static_cast<std::ptrdiff_t>(from_begin), bytes,
                    expected.begin() + static_cast<std::ptrdiff_t>(to_begin));
        posix::streaming_copy(to.data() + to_begin, from.data() + from_begin, bytes);
        if (to != expected) {
          INFO(bytes << " bytes from " << from_begin << " to " << to_begin);
          CHECK(to == expected);
        }
      }
    }
  }
  posix::streaming_copy(nullptr, nullptr, 0);
}

}  // namespace kolo::test
