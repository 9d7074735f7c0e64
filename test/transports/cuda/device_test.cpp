// Device over a fake driver: errors are explained, and no resource leaks.
#include "transports/cuda/device.h"

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "test/support/catch.h"
#include "test/transports/cuda/fake_driver.h"
#include "transports/cuda/chosen_device.h"
#include "transports/cuda/library.h"
#include "transports/error.h"
#include "transports/settings.h"

using namespace kolo;
using namespace kolo::cuda;
using namespace kolo::test;
using Kind = FakeDriver::Kind;

TEST_CASE("the error for a missing or old driver or a missing device explains the problem") {
  FakeMachine machine;
  const auto driver = machine.process();
  CHECK(why_unusable(*driver).empty());
  machine.driver_version = 11040;
  CHECK_THAT(why_unusable(*driver),
             ContainsSubstring("version 11.4") && ContainsSubstring("12.0 is the oldest"));
  CHECK(why_unusable(*driver, {11000}).empty());
  machine.driver_version = 12080;
  CHECK(why_unusable(*driver, {12000, 12090}).empty());
  CHECK(why_unusable(*driver, {12000, 13000}) ==
        "the CUDA driver is for CUDA 12.8, older than the runtime 13.0 of the kernels: install a "
        "newer driver, or build with an older nvcc");
  machine.driver_version = 12020;
  driver->fail("init", kNoDevice);
  CHECK_THAT(why_unusable(*driver),
             ContainsSubstring("no device") && ContainsSubstring("CUDA_ERROR_NO_DEVICE"));
  driver->fail("init", kSystemDriverMismatch);
  CHECK_THAT(why_unusable(*driver), ContainsSubstring("restart the machine"));
  machine.absent = "no CUDA driver (libcuda.so.1)";
  CHECK(why_unusable(*driver) == machine.absent);

  FakeMachine empty(0);
  CHECK_THAT(why_unusable(*empty.process()), ContainsSubstring("CUDA_VISIBLE_DEVICES"));
}

TEST_CASE("the error for a missing driver library names it and a remedy") {
  const auto driver = installed_driver("libcuda-of-nobody.so.1");
  CHECK_THAT(why_unusable(*driver), ContainsSubstring("no CUDA driver (libcuda-of-nobody.so.1)") &&
                                        ContainsSubstring("--gpus all"));
}

TEST_CASE("the error for a library without the driver's functions names the missing ones") {
  const auto driver = installed_driver("libc.so.6");
  CHECK_THAT(why_unusable(*driver), ContainsSubstring("too old: it has no cuInit, ") &&
                                        ContainsSubstring("cuStreamBatchMemOp_v2"));
}

TEST_CASE("a device describes itself, and unsuitable devices are refused") {
  FakeMachine machine(3);
  const auto driver = machine.process();
  {
    const Device device(driver, 1);
    CHECK(device.describe() == "device 1 (Played 1)");
    CHECK(device.uuid() == "GPU-02020202-0202-0202-0202-020202020202");
    CHECK(device.find(device.uuid()) == 1);
    CHECK(device.find("GPU-of-nobody") == -1);
    CHECK(device.can_reach(2));
    machine.peers_reach = false;
    CHECK(device.can_reach(1));
    CHECK_FALSE(device.can_reach(2));
  }
  CHECK_THROWS_WITH(Device(driver, 3), ContainsSubstring("no CUDA device 3: this process sees 3"));
  CHECK_THROWS_WITH(Device(driver, -1), ContainsSubstring("no CUDA device -1"));
  machine.hidden = {0};
  CHECK_THROWS_WITH(Device(driver, 0), ContainsSubstring("cannot wait for words of 64 bits"));
  CHECK(machine.left_over().empty());
}

TEST_CASE("a rank uses the configured device, the current one, or its own by default") {
  FakeMachine machine(3);
  const auto driver = machine.process();
  const char* const kVariable = "KOLO_CUDA_DEVICE";
  set_setting(kVariable, "");
  set_setting("LOCAL_RANK", "");
  CHECK(choose_device(*driver, -1, 4) == 1);
  set_setting("LOCAL_RANK", "2");
  CHECK(choose_device(*driver, -1, 4) == 2);
  set_setting("LOCAL_RANK", "");
  driver->current = 2;
  CHECK(choose_device(*driver, -1, 4) == 2);
  set_setting(kVariable, "1");
  CHECK(choose_device(*driver, -1, 4) == 1);
  CHECK(choose_device(*driver, 0, 4) == 0);
  set_setting(kVariable, "");
  machine.absent = "no CUDA driver";
  CHECK(choose_device(*driver, -1, 4) == 0);
}

TEST_CASE("the out-of-memory error gives the requested and the free size") {
  FakeMachine machine;
  machine.bytes_per_device = 100 << 20;
  const auto driver = machine.process();
  const Device device(driver, 0);
  std::byte* const most = device.allocate(88 << 20);
  CHECK_THROWS_WITH(device.allocate(64 << 20),
                    ContainsSubstring("64.0 MiB on device 0 (Played 0)") &&
                        ContainsSubstring("CUDA_ERROR_OUT_OF_MEMORY (in the driver's words)") &&
                        ContainsSubstring("12.0 MiB of 100.0 MiB are free"));
  driver->fail("allocate_host", kOutOfMemory);
  CHECK_THROWS_WITH(device.allocate_host(4096), ContainsSubstring("cuMemHostAlloc of 4.0 KiB"));
  device.free_host(device.allocate_host(4096));
  device.free(most);
  CHECK(machine.violations().empty());
}

TEST_CASE("memory in stream order is from a pool, and waits for no stream that waits") {
  FakeMachine machine;
  const auto driver = machine.process();
  const Device device(driver, 0);
  const Stream stream = driver->make_stream();
  machine.has_pools = false;
  device.free(device.allocate(64, stream));
  CHECK(driver->calls("allocate") == 1);
  machine.has_pools = true;
  alignas(8) std::byte words[8] = {};
  const Address word = device.register_host(words);
  device.run(wait_for_word(word, 1), stream);
  std::byte* const memory = device.allocate(64, stream);
  CHECK_THAT(device.look_at(memory).why_unexported, ContainsSubstring("memory pool"));
  device.free(memory);
  CHECK(driver->calls("allocate") == 1);
  CHECK(machine.violations().empty());
  driver->fail("allocate_async", kOutOfMemory);
  CHECK_THROWS_WITH(device.allocate(64, stream), ContainsSubstring("cuMemAllocAsync of 64 bytes"));
  device.run(write_word(word, 1), driver->make_stream());
  device.unregister_host(words);
  CHECK(machine.left_over() == "a context of device 0; ");
}

TEST_CASE("every kind of memory is recognized, with the reason if it cannot be exported") {
  FakeMachine machine;
  const auto driver = machine.process();
  const Device device(driver, 0);
  std::byte on_host{};
  CHECK(device.look_at(&on_host).kind == Pointer::Kind::kHost);
  CHECK(device.look_at(&on_host).why_unexported == "it is host memory");
  CHECK(device.buffer_at(&on_host) == 0);

  std::byte* const plain = device.allocate(8192);
  const Pointer inside = device.look_at(plain + 5000);
  CHECK(inside.kind == Pointer::Kind::kDevice);
  CHECK(inside.base == plain);
  CHECK(inside.bytes == 8192);
  CHECK(inside.why_unexported.empty());
  CHECK(device.buffer_at(plain + 1) == inside.buffer);
  device.free(plain);
  CHECK(device.buffer_at(plain) == 0);

  const auto why = [&](Kind kind) {
    return device.look_at(driver->make_memory(4096, kind)).why_unexported;
  };
  CHECK_THAT(why(Kind::kManaged), ContainsSubstring("managed"));
  CHECK_THAT(why(Kind::kVirtual), ContainsSubstring("virtual memory"));
  CHECK_THAT(why(Kind::kPool), ContainsSubstring("memory pool"));
  std::byte* const pinned = device.allocate_host(4096);
  CHECK(device.look_at(pinned).kind == Pointer::Kind::kPinned);
  CHECK_THAT(device.look_at(pinned).why_unexported, ContainsSubstring("host memory that a device"));
  CHECK(device.buffer_at(pinned) == 0);
  CHECK(device.is_known(pinned));
  CHECK_FALSE(device.is_known(&on_host));
}

TEST_CASE("the error for work on a destroyed stream asks whether it was destroyed") {
  FakeMachine machine;
  const auto driver = machine.process();
  const Device device(driver, 0);
  std::byte* const memory = device.allocate(64);
  const Stream stream = driver->make_stream();
  driver->destroy_stream(stream);
  CHECK_THROWS_WITH(device.copy(memory, memory, 8, stream),
                    ContainsSubstring("cuMemcpyAsync on device 0 (Played 0)") &&
                        ContainsSubstring("was the stream destroyed"));
}

TEST_CASE("the error for work on another device's stream asks whether that is the cause") {
  FakeMachine machine(2);
  const auto driver = machine.process();
  const Device device(driver, 0);
  std::byte* const memory = device.allocate(64);
  const Stream stream = driver->make_stream(1);
  CHECK_THROWS_WITH(device.copy(memory, memory, 8, stream),
                    ContainsSubstring("cuMemcpyAsync on device 0 (Played 0)") &&
                        ContainsSubstring("CUDA_ERROR_INVALID_HANDLE") &&
                        ContainsSubstring("is it one of another device or context?"));
  device.free(memory);
}

TEST_CASE(
    "a wait for a word compares modulo 2^64 as the driver does, so the highest value is 2^62") {
  FakeMachine machine;
  const auto driver = machine.process();
  const Device device(driver, 0);
  alignas(8) std::byte words[64] = {};
  const Address word = device.register_host(words);
  const Stream stream = driver->make_stream();
  const Event event = device.make_event();
  device.run(wait_for_word(word, 5), stream);
  device.record(event, stream);
  CHECK_FALSE(device.is_done(event));
  const Stream other = driver->make_stream();
  device.run(write_word(word, ~std::uint64_t{0}), other);
  CHECK_FALSE(device.is_done(event));
  device.run(write_word(word, std::uint64_t{1} << 62), other);
  CHECK(device.is_done(event));
  device.destroy_event(event);
  device.unregister_host(words);
}

TEST_CASE("an event that the driver cannot query is done only if the context is lost") {
  FakeMachine machine;
  const auto driver = machine.process();
  const Device device(driver, 0);
  alignas(8) std::byte words[8] = {};
  const Address word = device.register_host(words);
  const Stream stream = driver->make_stream();
  const Event event = device.make_event();
  device.run(wait_for_word(word, 1), stream);
  device.record(event, stream);
  for (const int code : {201, 400, 900, 907, 999, 699, 721}) {
    INFO(code);
    driver->fail("query_event", code);
    CHECK_FALSE(device.is_done(event));
    driver->fail("query_event", code);
    CHECK_THROWS_WITH(device.has_come(event), ContainsSubstring("cuEventQuery on device 0"));
  }
  for (const int code : {4, 700, 709, 719, 720}) {
    INFO(code);
    driver->fail("query_event", code);
    CHECK(device.is_done(event));
  }
  driver->fail("push_context", 999);
  CHECK_FALSE(device.is_done(event));
  CHECK_FALSE(device.is_done(event));
  CHECK_FALSE(device.has_come(event));
  device.run(write_word(word, 1), driver->make_stream());
  CHECK(device.is_done(event));
  CHECK(device.has_come(event));
  device.destroy_event(event);
  device.unregister_host(words);
  CHECK(machine.violations().empty());
}

// Calls every function of Device once, from the first to the last.
static void do_everything(const std::shared_ptr<FakeDriver>& driver, Stream stream) {
  const Device device(driver, 0);
  std::vector<std::byte> words(4096);
  std::byte* memory = nullptr;
  Event event = nullptr;
  bool is_registered = false;
  const auto clean_up = [&] {
    if (event != nullptr) device.destroy_event(event);
    if (is_registered) device.unregister_host(words.data());
    if (memory != nullptr) device.free(memory);
  };
  try {
    memory = device.allocate(4096);
    device.enable_peer(Device(driver, 1));
    const Address word = device.register_host(words);
    is_registered = true;
    event = device.make_event();
    device.look_at(memory);
    device.export_memory(memory);
    device.capture_of(stream);
    device.run(write_low_word(word, 1), stream);
    device.copy(memory, memory + 64, 64, stream);
    device.run(write_word(word, 1), stream);
    device.run(wait_for_word(word, 1), stream);
    device.record(event, stream);
    device.wait_for(event, stream);
    device.find(device.uuid());
    device.can_reach(1);
  } catch (...) {
    clean_up();
    throw;
  }
  clean_up();
}

TEST_CASE("the error for a failed call names it and the device, and no resource leaks") {
  for (const char* function :
       {"device_name", "device_uuid", "device_attribute", "retain_context", "push_context",
        "allocate", "register_host", "host_address", "create_event", "pointer_attribute",
        "ipc_handle", "capture_of", "copy", "word_operations", "record_event", "wait_event",
        "can_access_peer", "enable_peer_access", "exchange_capture_mode"}) {
    INFO(function);
    FakeMachine machine(2);
    const auto driver = machine.process();
    const Stream stream = driver->make_stream();
    driver->fail(function, 999);
    try {
      do_everything(driver, stream);
      FAIL("no error");
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::kSystem);
      CHECK_THAT(error.what(),
                 ContainsSubstring("on device 0") && ContainsSubstring("the driver's error 999"));
    }
    CHECK(machine.left_over().empty());
    CHECK(machine.violations().empty());
  }
}

TEST_CASE("an entered device pushes its context once, whichever Device object is called") {
  FakeMachine machine(2);
  const auto driver = machine.process();
  const Stream stream = driver->make_stream();
  const Device device(driver, 0);
  const Device again(driver, 0);
  const Device other(driver, 1);
  const auto pushes = [&] { return driver->calls("push_context"); };
  const int before = pushes();
  {
    const Device::Entered entered(device);
    const Device::Entered within(again);
    CHECK(pushes() == before + 1);
    CHECK(device.capture_of(stream) == 0);
    CHECK(again.capture_of(stream) == 0);
    CHECK(driver->calls("capture_of") == 1);
    CHECK(device.capture_of(driver->make_stream()) == 0);
    CHECK(driver->calls("capture_of") == 2);
    device.free(again.allocate(64));
    CHECK(pushes() == before + 1);
    CHECK(driver->calls("exchange_capture_mode") == 1);
    other.free(other.allocate(64));  // each Device frees memory on its own device
    CHECK(pushes() == before + 3);
    std::jthread([&] { device.free(device.allocate(64)); }).join();
    CHECK(pushes() == before + 5);
    device.free(device.allocate(64));
    CHECK(pushes() == before + 5);
  }
  CHECK(driver->calls("pop_context") == pushes());
  CHECK(driver->calls("exchange_capture_mode") == 2 * pushes());
  driver->capture(stream);  // a later check finds it
  CHECK(device.capture_of(stream) != 0);
  driver->end_capture(stream);
  CHECK(machine.violations().empty());
}

TEST_CASE("a device that cannot be entered leaves the thread unchanged") {
  FakeMachine machine;
  const auto driver = machine.process();
  const Device device(driver, 0);
  driver->fail("push_context", 999);
  CHECK_THROWS_WITH(Device::Entered(device), ContainsSubstring("cuCtxPushCurrent_v2 on device 0"));
  CHECK(driver->calls("exchange_capture_mode") == 2);
  device.free(device.allocate(64));
  CHECK(driver->calls("pop_context") == 2);
  CHECK(machine.violations().empty());
}

TEST_CASE("number_at() asks the driver once") {
  FakeMachine machine;
  const auto driver = machine.process();
  const Device device(driver, 0);
  std::byte* const memory = device.allocate(64);
  CHECK(device.number_at(memory) == device.look_at(memory).buffer);
  const int asked = driver->calls("pointer_attribute");
  CHECK(device.number_at(memory + 63) == device.buffer_at(memory));
  CHECK(driver->calls("pointer_attribute") == asked + 3);
  int on_stack = 0;
  CHECK(device.number_at(&on_stack) == 0);
  device.free(memory);
  CHECK(device.number_at(memory) == 0);
}
