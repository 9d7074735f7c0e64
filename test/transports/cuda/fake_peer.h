// A rank that runs the cuda_ipc bootstrap on a thread of its own, and a fake rank 1 of two that
// does one step at a time.
#pragma once

#include <array>
#include <chrono>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "test/transports/cuda/fake_driver.h"
#include "test/transports/support/unix_clients.h"
#include "transports/cuda/address.h"
#include "transports/cuda/bootstrap.h"
#include "transports/cuda/hello.h"
#include "transports/posix/shared_memory.h"
#include "transports/posix/unix_socket.h"
#include "transports/store/all_gather.h"

namespace kolo::test {

// Rank 0 of two.
class BootstrapRank {
 public:
  BootstrapRank(FakeMachine& machine, const std::shared_ptr<Store>& store)
      : driver_(machine.process()), thread_([this, store] {
          try {
            const TransportRequest request{0, 2, store, Clock::now() + std::chrono::seconds(120),
                                           0, 2};
            cuda::BootstrapSettings settings;
            settings.segment_bytes = 4096;
            settings.process = "played";
            settings.driver = driver_;
            met_ = cuda::meet(request, settings);
          } catch (...) {
            error_ = std::current_exception();
          }
        }) {}
  ~BootstrapRank() {
    if (thread_.joinable()) thread_.join();
  }
  BootstrapRank(const BootstrapRank&) = delete;
  BootstrapRank& operator=(const BootstrapRank&) = delete;

  // The result of the bootstrap; rethrows its exception.
  cuda::BootstrapResult& met() {
    thread_.join();
    if (error_) std::rethrow_exception(error_);
    return *met_;
  }

  FakeDriver& driver() { return *driver_; }

 private:
  std::shared_ptr<FakeDriver> driver_;
  std::unique_ptr<cuda::BootstrapResult> met_;
  std::exception_ptr error_;
  std::thread thread_;
};

class FakePeer {
 public:
  // The listener queue that rank 0 finds: full until empty_queue().
  enum class Queue { kEmpty, kFull };

  FakePeer(const std::shared_ptr<Store>& store, cuda::Driver& driver, Queue queue = Queue::kEmpty)
      : store_(store) {
    while (queue == Queue::kFull) {
      auto one = posix::connect_unix(listener_.name());
      if (!one) break;
      in_queue_.push_back(std::move(*one));
    }
    own_.process = "played";
    own_.uuid = cuda::uuid_of(driver, 0);
    own_.socket = listener_.name();
    own_.token = 7;
    own_.segment_bytes = 4096;
    own_.slots = kMinimumCredit;
    own_.ring = 4096;
    there_ = cuda::address_from_text(exchange("address", cuda::to_text(own_)), 0);
  }

  const std::string& socket() const { return there_.socket; }

  void empty_queue() {
    for (; !in_queue_.empty(); in_queue_.pop_back()) take_call();
  }

  void come() { socket_ = come_to(there_.socket); }

  cuda::Hello hello() const { return {cuda::Hello{}.magic, there_.token, 1}; }

  void say_hello() {
    const cuda::Hello hello = this->hello();
    if (!posix::send_message(socket_.get(), std::as_bytes(std::span(&hello, 1)),
                             words_.descriptor()))
      throw std::runtime_error("rank 0 has hung up");
  }

  // The answer of rank 0.
  std::uint64_t answer() {
    std::uint64_t said = 0;
    posix::Message message;
    until(
        [&] {
          message =
              posix::receive_message(socket_.get(), std::as_writable_bytes(std::span(&said, 1)));
          return message.what != posix::Received::kNothing;
        },
        "an answer");
    return message.bytes == sizeof said ? said : 0;
  }

  // Accepts the next connection of rank 0.
  posix::Descriptor take_call() {
    std::optional<posix::Descriptor> call;
    until([&] { return (call = listener_.accept()).has_value(); }, "a call");
    return std::move(*call);
  }

  // The hello received there, and whether a descriptor of memory came with it.
  static std::pair<cuda::Hello, bool> hear(const posix::Descriptor& call) {
    cuda::Hello hello;
    posix::Message message;
    until(
        [&] {
          message =
              posix::receive_message(call.get(), std::as_writable_bytes(std::span(&hello, 1)));
          return message.what != posix::Received::kNothing;
        },
        "a hello");
    return {hello, message.passed.is_open()};
  }

  static void say(const posix::Descriptor& call, std::uint64_t answer) {
    posix::send_message(call.get(), std::as_bytes(std::span(&answer, 1)));
  }

  std::uint64_t own_token() const { return own_.token; }
  std::uint64_t token_of_rank_0() const { return there_.token; }

  void say_mapped() { exchange("mapped", ""); }

 private:
  std::string exchange(std::string_view key, const std::string& text) {
    return kolo::exchange(*store_, 1, 2, key, text, Clock::now() + std::chrono::seconds(60),
                          "play a rank")[0];
  }

  const std::shared_ptr<Store> store_;
  posix::UnixListener listener_{4};
  posix::SharedMemory words_{2 * cuda::kBlockBytes};
  cuda::EndpointAddress own_;
  cuda::EndpointAddress there_;
  posix::Descriptor socket_;
  std::vector<posix::Descriptor> in_queue_;
};

}  // namespace kolo::test
