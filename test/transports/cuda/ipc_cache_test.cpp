// Cache of IPC handles: exported once per allocation, opened once by each peer, and closed after
// the allocation is freed.
#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include "test/support/catch.h"
#include "test/transports/cuda/fake_driver.h"
#include "transports/cuda/ipc_exports.h"
#include "transports/cuda/ipc_imports.h"
#include "transports/error.h"

using namespace kolo;
using namespace kolo::cuda;
using namespace kolo::test;

namespace {

// An exporting process and an importing one.
struct Two {
  explicit Two(std::size_t most = 64) : imports(importer, "rank 1", false, most) {}

  FakeMachine machine;
  std::shared_ptr<FakeDriver> one = machine.process();
  std::shared_ptr<FakeDriver> other = machine.process();
  Device exporter{one, 0};
  Device importer{other, 0};
  IpcExports exports{exporter};
  IpcImports imports;
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

TEST_CASE("the error for memory that cannot be exported gives the reason, also the driver's") {
  Two two;
  const auto* pool = two.one->make_memory(64, FakeDriver::Kind::kPool);
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

TEST_CASE("an allocation is opened once, and maps the peer's bytes to a local address") {
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

TEST_CASE(
    "an allocation used by several channels of a process is opened once, and closed by the last") {
  Two two;
  IpcImports split(two.importer, "rank 1", false);
  const Device again(two.other, 0);
  IpcImports thread(again, "rank 2", false);
  std::byte* const memory = two.exporter.allocate(4096);
  IpcExports exports_of_split(two.exporter);
  const auto place = two.exports.find(memory, 8);
  const auto there = exports_of_split.find(memory + 8, 8);
  std::byte* const seen = two.imports.map(*place, 8, 1);
  CHECK(split.map(*there, 8, 1) == seen + 8);
  CHECK(thread.map(*place, 8, 1) == seen);
  CHECK(two.other->calls("ipc_open") == 1);
  two.imports.close_all();
  split.forget(there->buffer);
  split.finish(1);
  CHECK(two.other->calls("ipc_close") == 0);
  CHECK(thread.map(*place, 8, 2) == seen);
  std::byte* const slots = again.open(place->handle, 4096, "rank 1");
  CHECK(slots == two.importer.open(place->handle, 4096, "rank 1"));
  thread.close_all();
  again.close(slots);
  CHECK(two.other->calls("ipc_close") == 0);
  two.importer.close(slots);
  CHECK(two.other->calls("ipc_open") == 1);
  CHECK(two.other->calls("ipc_close") == 1);
  two.exporter.free(memory);
  CHECK(two.machine.violations().empty());
}

TEST_CASE("an allocation is opened once for each device of a process") {
  FakeMachine machine(2);
  const auto one = machine.process();
  const auto other = machine.process();
  const Device exporter(one, 0);
  const Device first(other, 0);
  const Device second(other, 1);
  std::byte* const memory = exporter.allocate(64);
  const IpcHandle handle = exporter.export_memory(memory);
  std::byte* const here = first.open(handle, 64, "rank 1");
  std::byte* const there = second.open(handle, 64, "rank 1");
  CHECK(here != there);
  first.close(here);
  CHECK(other->calls("ipc_close") == 1);
  second.close(there);
  exporter.free(memory);
  CHECK(machine.violations().empty());
}

TEST_CASE("threads that open and close one allocation at the same time share its mapping") {
  Two two;
  std::byte* const memory = two.exporter.allocate(4096);
  const IpcHandle handle = two.exporter.export_memory(memory);
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 200; ++round) {
        std::byte* const mapped = two.importer.open(handle, 4096, "rank 1");
        std::byte* const again = two.importer.open(handle, 4096, "rank 1");
        wrong += mapped == again ? 0 : 1;
        two.importer.close(mapped);
        two.importer.close(again);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
  two.exporter.free(memory);
  CHECK(two.machine.violations().empty());
}

TEST_CASE("memory that replaces memory in use is opened when that work is done") {
  FakeMachine machine;
  const auto one = machine.process();
  const auto other = machine.process();
  const Device exporter(one, 0);
  const Device importer(other, 0);
  bool is_done = false;
  IpcExports exports(exporter);
  IpcImports imports(importer, "rank 1", false, 64, [&] { return is_done; });
  std::byte* const memory = exporter.allocate(4096);
  imports.map(*exports.find(memory, 8), 8, 1);
  one->replace(memory);
  const auto place = *exports.find(memory, 8);
  CHECK_THROWS_WITH(imports.map(place, 8, 2), ContainsSubstring("was it freed too early?"));
  imports.give(1);
  CHECK(imports.map(place, 8, 2) == nullptr);
  CHECK(imports.map(place, 8, 2) == nullptr);
  CHECK(other->calls("ipc_open") == 1);
  is_done = true;
  CHECK(imports.map(place, 8, 2) != nullptr);
  CHECK(other->calls("ipc_open") == 2);
  CHECK(other->calls("ipc_close") == 1);
  imports.close_all();
  CHECK(machine.violations().empty());
}

TEST_CASE("another channel's mapping that blocks new memory is closed when its work is done") {
  Two two;
  bool is_done = false;
  IpcImports split(two.importer, "rank 1", false, 64, [&] { return is_done; });
  std::byte* const memory = two.exporter.allocate(4096);
  const Exported before = *two.exports.find(memory, 8);
  split.map(before, 8, 1);
  two.one->replace(memory);
  const Exported after = *two.exports.find(memory, 8);
  CHECK_THROWS_WITH(two.imports.map(after, 8, 1), ContainsSubstring("CUDA_ERROR_ALREADY_MAPPED") &&
                                                      ContainsSubstring("still in use"));
  split.give(1);
  CHECK(two.imports.map(after, 8, 1) == nullptr);
  is_done = true;
  std::byte* const seen = two.imports.map(after, 8, 1);
  REQUIRE(seen != nullptr);
  CHECK(two.other->calls("ipc_close") == 1);
  // The channel that lost its mapping learns this when it maps the same or another allocation.
  CHECK(split.map(after, 8, 2) == seen);
  split.forget(before.buffer);
  split.close_all();
  CHECK(two.other->calls("ipc_close") == 1);
  two.imports.close_all();
  CHECK(two.other->calls("ipc_close") == 2);
  CHECK(two.machine.violations().empty());
}

TEST_CASE("a later allocation with an earlier one's handle is not confused with it") {
  Two two;
  IpcImports split(two.importer, "rank 1", false, 64, [] { return true; });
  std::byte* const memory = two.exporter.allocate(4096);
  const Exported before = *two.exports.find(memory, 8);
  split.map(before, 8, 1);
  split.give(1);
  Exported later = before;
  ++later.buffer;
  CHECK(two.imports.map(later, 8, 1) != nullptr);
  CHECK(two.other->calls("ipc_close") == 1);
  CHECK(two.other->calls("ipc_open") == 3);  // one of them was refused
  split.close_all();
  two.imports.close_all();
  CHECK(two.machine.violations().empty());
}

TEST_CASE("all allocations of a block must be closed before new memory there is opened") {
  FakeMachine machine;
  machine.block_bytes = std::size_t{1} << 46;  // wherever the allocations lie
  const auto one = machine.process();
  const auto other = machine.process();
  const Device exporter(one, 0);
  const Device importer(other, 0);
  IpcExports exports(exporter);
  IpcImports imports(importer, "rank 1", false);
  std::byte* const first = exporter.allocate(4096);
  std::byte* const second = exporter.allocate(4096);
  std::byte* const mapped = imports.map(*exports.find(first, 8), 8, 1);
  CHECK(imports.map(*exports.find(second, 8), 8, 1) != mapped);
  CHECK(other->calls("ipc_open") == 2);
  imports.finish(1);
  one->replace({first, second});
  std::byte* const third = exporter.allocate(4096);
  CHECK(imports.map(*exports.find(third, 8), 8, 2) != nullptr);
  CHECK(other->calls("ipc_close") == 2);
  CHECK(imports.map(*exports.find(first, 8), 8, 2) != nullptr);
  imports.close_all();
  CHECK(machine.violations().empty());
}

TEST_CASE("a freed allocation is closed after the work that uses it is done") {
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

TEST_CASE(
    "memory at the place of an opened allocation replaces it without a message from the peer") {
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

TEST_CASE("the most recently used allocations stay open, and allocations in use always do") {
  Two two(2);
  const auto open = [&](std::uint64_t work) {
    const std::byte* const memory = two.exporter.allocate(64);
    const auto place = two.exports.find(memory, 64);
    two.imports.map(*place, 64, work);
    return *place;
  };
  const Exported first = open(1);
  open(2);
  const Exported last = open(3);
  CHECK(two.imports.size() == 3);  // all in use
  two.imports.finish(3);
  CHECK(two.imports.size() == 2);
  two.imports.map(last, 64, 4);
  CHECK(two.other->calls("ipc_open") == 3);
  two.imports.map(first, 64, 5);
  CHECK(two.other->calls("ipc_open") == 4);
  CHECK(two.imports.size() == 3);
}

TEST_CASE("the error for a refused handle names its owner and the likely cause") {
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

TEST_CASE("a peer that gives another length for an open allocation is rejected") {
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

TEST_CASE("a peer that gives a larger allocation than the driver knows is rejected") {
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
                                   " bytes, but the driver has 4096"));
    }
  }
  CHECK(two.imports.size() == 0);
  two.other->fail("pointer_attribute", 999);
  CHECK_THROWS_WITH(two.imports.map(*place, 64, 1), ContainsSubstring("the driver's error 999"));
  CHECK(two.other->calls("ipc_close") == 3);
  CHECK(two.imports.map(*place, 64, 1) != nullptr);
}

TEST_CASE("an allocation at the end of the address space overlaps no allocation elsewhere") {
  Two two;
  std::byte* const memory = two.exporter.allocate(64);
  const auto place = two.exports.find(memory, 64);
  REQUIRE(place);
  Exported last = *two.exports.find(two.exporter.allocate(64), 64);
  last.base = ~std::uint64_t{0} - 10;  // 64 bytes long: its end wraps around
  two.imports.map(*place, 64, 1);
  two.imports.map(last, 64, 1);
  CHECK(two.imports.size() == 2);
}

TEST_CASE("a peer's pointers in one process are used directly, and nothing is opened") {
  FakeMachine machine;
  const auto driver = machine.process();
  const Device device(driver, 0);
  IpcExports exports(device);
  IpcImports imports(device, "rank 1", true);
  std::byte* const memory = device.allocate(64);
  CHECK(imports.map(*exports.find(memory + 8, 8), 8, 1) == memory + 8);
  CHECK(driver->calls("ipc_open") == 0);
  CHECK(machine.violations().empty());
}
