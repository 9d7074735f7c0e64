// Peers in processes of their own: launchers that fail, and a peer whose process is a thread of the
// test.
#include "bench/peers/worker_processes.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>

#include "bench/measure/buffer.h"
#include "test/support/catch.h"
#include "transports/error.h"
#include "transports/posix/descriptor.h"

using namespace kolo;
using namespace kolo::bench;
using namespace std::chrono_literals;

namespace {

LibraryRequest request_for(std::shared_ptr<Store> store) {
  LibraryRequest request;
  request.store = std::move(store);
  request.timeout = 60s;
  return request;
}

std::string why_it_fails(std::vector<std::string> words) {
  try {
    const WorkerProcesses elsewhere("a peer", request_for(make_local_store()),
                                    {std::move(words), {}});
  } catch (const Error& error) {
    REQUIRE(error.code() == ErrorCode::kAborted);
    return error.what();
  }
  FAIL("the worker processes started without an error");
  return {};
}

bool contains(const std::string& text, const std::string& part) {
  INFO(text);
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("the error quotes the output of a launcher that fails") {
  const std::string why = why_it_fails({"sh", "-c", "echo 'no   slots\nleft'; exit 3"});
  REQUIRE(contains(why, "a peer: its processes have ended too early (exit code 3)"));
  REQUIRE(contains(why, "it said: no slots left"));
}

TEST_CASE("the error says that a launcher is not installed") {
  REQUIRE(contains(why_it_fails({"/no/such/launcher"}), "could not be started"));
}

TEST_CASE("a launcher that ends too early without an error is a failure as well") {
  REQUIRE(contains(why_it_fails({"true"}), "exit code 0"));
}

TEST_CASE("a pass runs in the other process on the same pages") {
  const auto folder =
      std::filesystem::temp_directory_path() / ("kolo-elsewhere-" + std::to_string(getpid()));
  std::filesystem::create_directory(folder);
  const std::string pipe = folder / "end";
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  const auto local = make_local_store();
  // The launcher ends when the pipe is closed.
  std::thread process([&] {
    const auto port = static_cast<std::uint16_t>(std::stoi(local->get("port", Clock::now() + 60s)));
    const auto store = connect_tcp_store("127.0.0.1", port, Clock::now() + 60s);
    const posix::Descriptor end(open(pipe.c_str(), O_WRONLY | O_CLOEXEC));
    store->set(hello_key(0), "release 7");
    const WorkerRequest order =
        parse_worker_request(store->get(request_key(0, 0), Clock::now() + 60s));
    const bench::Buffer data(order.data_path, order.data_bytes);
    data.data()[4095] = std::byte{42};
    store->set(result_key(0, 0), to_text(PassResult{1, {2, 3}, 4, order.turn.iteration + 1}));
    store->get(request_key(1, 0), Clock::now() + 60s);
  });
  {
    WorkerProcesses elsewhere("a peer", request_for(local),
                              {{"sh", "-c", "cat '" + pipe + "'"}, {}});
    REQUIRE(elsewhere.version() == "release 7");
    const bench::Buffer data(4096, Pages::kShared);
    PassRequest turn;
    turn.iteration = 9;
    const PassResult result = elsewhere.run_pass(turn, data, {});
    REQUIRE(result.times_us == std::vector<double>{2, 3});
    REQUIRE(result.wrong == 4);
    REQUIRE(result.iteration == 10);
    REQUIRE(data.data()[4095] == std::byte{42});
  }
  process.join();
  std::filesystem::remove_all(folder);
}
