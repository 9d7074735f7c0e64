// Handles: asked for once per allocation, opened once by each peer, closed when the allocation is
// gone.
#include <cstring>

#include "test/support/catch.h"
#include "test/transports/cuda/played.h"
#include "transports/cuda/exports.h"
#include "transports/cuda/imports.h"
#include "transports/error.h"

using namespace kolo;
using namespace kolo::cuda;
using namespace kolo::test;

namespace {

// An exporting process and an importing one.
struct Two {
  explicit Two(std::size_t most = 64) : imports(importer, "rank 1", false, most) {}

  PlayedMachine machine;
  std::shared_ptr<PlayedDriver> one = machine.process();
  std::shared_ptr<PlayedDriver> other = machine.process();
  Device exporter{one, 0};
  Device importer{other, 0};
  Exports exports{exporter};
  Imports imports;
};

}  // namespace

TEST_CASE("a handle is made once per allocation, whatever part of it is sent") {
  Two two;
  std::byte* const memory = two.exporter.allocate(10'000);
  const auto whole = two.exports.find(memory, 10'000);
  const auto part = two.exports.find(memory + 4000, 6000);
  REQUIRE(whole);
  REQUIRE(part);
  CHECK(whole->offset == 0);
  CHECK(part->offset == 4000);
  CHECK(part->buffer == whole->buffer);
  CHECK(two.one->calls("ipc_handle") == 1);
  CHECK_FALSE(two.exports.find(memory + 4000, 6001));
  CHECK_THAT(two.exports.why_not(), ContainsSubstring("beyond the end"));
}

TEST_CASE("what cannot be exported is said, and so is what the driver refuses to export") {
  Two two;
  const auto* pool = two.one->make_memory(64, PlayedDriver::Kind::kPool);
  CHECK_FALSE(two.exports.find(pool, 64));
  CHECK_THAT(two.exports.why_not(), ContainsSubstring("memory pool"));
  std::byte* const memory = two.exporter.allocate(64);
  two.one->fail("ipc_handle", kNotSupported);
  CHECK_FALSE(two.exports.find(memory, 64));
  CHECK_THAT(two.exports.why_not(), ContainsSubstring("cuIpcGetMemHandle"));
  CHECK(two.exports.find(memory, 64));
}

TEST_CASE("a new allocation at the same address has another handle, and the old one is gone") {
  Two two;
  std::byte* const memory = two.exporter.allocate(4096);
  const auto before = two.exports.find(memory, 64);
  REQUIRE(before);
  std::uint64_t seen = 0;
  const auto find_gone = [&] {
    two.exports.look_for_gone();
    return two.exports.next_gone(seen);
  };
  CHECK(find_gone() == 0);
  two.one->replace(memory);
  const auto after = two.exports.find(memory, 64);
  REQUIRE(after);
  CHECK(after->buffer != before->buffer);
  CHECK(std::memcmp(&after->handle, &before->handle, sizeof(IpcHandle)) != 0);
  std::uint64_t gone = 0;
  for (int i = 0; i < 2 && gone == 0; ++i) gone = find_gone();
  CHECK(gone == before->buffer);
  CHECK(two.exports.size() == 1);
  two.exporter.free(memory);
  CHECK(find_gone() == after->buffer);
  CHECK(find_gone() == 0);
  std::uint64_t seen_by_another = 0;
  CHECK(two.exports.next_gone(seen_by_another) == before->buffer);
  CHECK(two.exports.next_gone(seen_by_another) == after->buffer);
  CHECK(two.exports.next_gone(seen_by_another) == 0);
}

TEST_CASE("an allocation is opened once, and shows the peer's bytes at its own place") {
  Two two;
  std::byte* const memory = two.exporter.allocate(4096);
  memory[100] = std::byte{7};
  const auto place = two.exports.find(memory + 100, 8);
  std::byte* const seen = two.imports.map(*place, 8, 1);
  CHECK(seen != memory + 100);
  CHECK(*seen == std::byte{7});
  CHECK(two.imports.map(*two.exports.find(memory, 8), 8, 2) == seen - 100);
  CHECK(two.other->calls("ipc_open") == 1);
  two.imports.close_all();
  two.exporter.free(memory);
  CHECK(two.machine.violations().empty());
}

TEST_CASE("a freed allocation is closed, and not before the work that uses it is done") {
  Two two;
  std::byte* const memory = two.exporter.allocate(4096);
  const auto place = two.exports.find(memory, 8);
  two.imports.map(*place, 8, 3);
  two.imports.forget(place->buffer);
  CHECK(two.imports.size() == 1);
  two.imports.finish(2);
  CHECK(two.imports.size() == 1);
  two.imports.finish(3);
  CHECK(two.imports.size() == 0);
  CHECK(two.other->calls("ipc_close") == 1);
  two.exporter.free(memory);
  CHECK(two.machine.violations().empty());
}

TEST_CASE("what lies where an opened allocation was replaces it, without a word from the peer") {
  Two two;
  std::byte* const memory = two.exporter.allocate(4096);
  two.imports.map(*two.exports.find(memory, 8), 8, 1);
  two.imports.finish(1);
  two.one->replace(memory);
  two.imports.map(*two.exports.find(memory, 8), 8, 2);
  CHECK(two.imports.size() == 1);
  CHECK(two.other->calls("ipc_open") == 2);
  CHECK(two.other->calls("ipc_close") == 1);
}

TEST_CASE(
    "of many allocations the ones used last stay open, and what is in use stays in any case") {
  Two two(2);
  const auto open = [&](std::uint64_t work) {
    const std::byte* const memory = two.exporter.allocate(64);
    const auto place = two.exports.find(memory, 64);
    two.imports.map(*place, 64, work);
    return *place;
  };
  const Exported first = open(1);
  open(2);
  open(3);
  CHECK(two.imports.size() == 3);  // all in use
  two.imports.finish(3);
  two.imports.map(first, 64, 4);
  CHECK(two.other->calls("ipc_open") == 3);
  open(5);
  CHECK(two.imports.size() == 2);
  two.imports.map(first, 64, 6);
  CHECK(two.other->calls("ipc_open") == 4);
}

TEST_CASE("a refused handle names whose it was and what may be in the way") {
  Two two;
  std::byte* const memory = two.exporter.allocate(64);
  const auto place = two.exports.find(memory, 64);
  two.other->fail("ipc_open", kNotSupported);
  CHECK_THROWS_WITH(two.imports.map(*place, 64, 1),
                    ContainsSubstring("cuIpcOpenMemHandle_v2 of rank 1's memory") &&
                        ContainsSubstring("--ipc=host"));
  CHECK(two.imports.size() == 0);
  CHECK_THROWS_WITH(two.imports.map(*place, 65, 1), ContainsSubstring("rank 1 offers 65 bytes"));
}

TEST_CASE("a peer that says another length of what is open already is not believed") {
  Two two;
  std::byte* const memory = two.exporter.allocate(4096);
  const auto place = two.exports.find(memory, 64);
  REQUIRE(place);
  two.imports.map(*place, 64, 1);
  Exported longer = *place;
  longer.bytes = std::uint64_t{1} << 40;
  longer.offset = std::uint64_t{1} << 39;
  CHECK_THROWS_WITH(two.imports.map(longer, 64, 1),
                    ContainsSubstring("rank 1 offers a part of an allocation of"));
  Exported elsewhere = *place;
  elsewhere.base += 4096;
  CHECK_THROWS_WITH(two.imports.map(elsewhere, 64, 1), ContainsSubstring("by the number of"));
  CHECK(two.imports.map(*place, 64, 1) != nullptr);
  CHECK(two.machine.violations().empty());
}

TEST_CASE("a peer that says more of an allocation than the driver has there is not believed") {
  Two two;
  std::byte* const memory = two.exporter.allocate(4096);
  const auto place = two.exports.find(memory, 64);
  REQUIRE(place);
  for (const std::uint64_t bytes : {std::uint64_t{4097}, ~std::uint64_t{0}}) {
    Exported longer = *place;
    longer.bytes = bytes;
    longer.offset = bytes - 64;
    try {
      two.imports.map(longer, 64, 1);
      FAIL("no error");
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::kProtocol);
      CHECK_THAT(error.what(),
                 ContainsSubstring("rank 1 offers memory of " + std::to_string(bytes) +
                                   " bytes, of which the driver has 4096"));
    }
  }
  CHECK(two.imports.size() == 0);
  two.other->fail("pointer_attribute", 999);
  CHECK_THROWS_WITH(two.imports.map(*place, 64, 1), ContainsSubstring("the driver's error 999"));
  CHECK(two.other->calls("ipc_close") == 3);
  CHECK(two.imports.map(*place, 64, 1) != nullptr);
}

TEST_CASE("an allocation at the end of all addresses overlaps none that lies elsewhere") {
  Two two;
  std::byte* const memory = two.exporter.allocate(64);
  const auto place = two.exports.find(memory, 64);
  REQUIRE(place);
  Exported last = *place;
  last.buffer = ~std::uint64_t{0};
  last.base = ~std::uint64_t{0} - 10;  // of 64 bytes: some way round
  two.imports.map(*place, 64, 1);
  two.imports.map(last, 64, 1);
  CHECK(two.imports.size() == 2);
}

TEST_CASE("in one process a peer's pointers are one's own, and nothing is opened") {
  PlayedMachine machine;
  const auto driver = machine.process();
  const Device device(driver, 0);
  Exports exports(device);
  Imports imports(device, "rank 1", true);
  std::byte* const memory = device.allocate(64);
  CHECK(imports.map(*exports.find(memory + 8, 8), 8, 1) == memory + 8);
  CHECK(driver->calls("ipc_open") == 0);
  CHECK(machine.violations().empty());
}
