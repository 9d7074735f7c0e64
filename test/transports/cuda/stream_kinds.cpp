#include "test/transports/cuda/stream_kinds.h"

#include <algorithm>
#include <exception>
#include <stdexcept>
#include <thread>

#include "test/transports/conformance/transport_table.h"

namespace kolo::test {

namespace {

constexpr StreamKind kKinds[] = {
    {"cuda_ipc", "shm", false}, {"staged over inproc", "inproc"}, {"staged over shm", "shm"},
    {"staged over tcp", "tcp"}, {"staged over ucx", "ucx"},       {"staged over ofi", "ofi"},
};

Deadline soon() { return Clock::now() + std::chrono::seconds(60); }

}  // namespace

std::vector<StreamKind> stream_kinds() {
  std::vector<StreamKind> kinds;
  const auto built = transport_names();
  for (const StreamKind& kind : kKinds) {
    const bool is_built = std::ranges::find(built, kind.host) != built.end();
    if (is_built) kinds.push_back(kind);
  }
  return kinds;
}

std::optional<Error> error_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    return error;
  }
  return std::nullopt;
}

std::unique_ptr<Transport> stage(std::unique_ptr<Transport> host,
                                 const std::shared_ptr<FakeDriver>& driver,
                                 const std::function<void(StagedSettings&)>& adjust) {
  StagedSettings settings;
  settings.device = 0;
  settings.driver = driver;
  settings.longest_segment_bytes = kStreamSegment;
  settings.patience = std::chrono::seconds(20);
  if (adjust) adjust(settings);
  return make_staged(std::move(host), settings);
}

std::vector<std::unique_ptr<Transport>> make_hosts(std::string_view name, int size) {
  std::vector<std::unique_ptr<Transport>> hosts(static_cast<std::size_t>(size));
  std::vector<std::exception_ptr> errors(hosts.size());
  const std::shared_ptr<Store> store = make_local_store();
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      const auto index = static_cast<std::size_t>(rank);
      try {
        const TransportRequest request{rank, size, store, soon(), 0, size};
        hosts[index] = make_transport(name, request);
      } catch (...) {
        errors[index] = std::current_exception();
      }
    });
  }
  for (auto& thread : threads) thread.join();
  for (const auto& error : errors) {
    if (error) std::rethrow_exception(error);
  }
  return hosts;
}

StreamRanks::StreamRanks(const StreamKind& kind, int size, const Adjust& adjust,
                         FakeMachine::Runs runs)
    : machine(1, runs) {
  if (!kind.is_staged) {
    ranks = make_fake_ranks(machine, size);
  } else {
    auto hosts = make_hosts(kind.host, size);
    for (int rank = 0; rank < size; ++rank) {
      FakeRank made;
      made.driver = machine.process();
      made.transport =
          stage(std::move(hosts[index(rank)]), made.driver, [&](StagedSettings& settings) {
            if (adjust) adjust(rank, settings);
          });
      ranks.push_back(std::move(made));
    }
  }
  for (const FakeRank& rank : ranks) streams.push_back(rank.driver->make_stream());
  for (int rank = 0; rank < size; ++rank) {
    for (int peer = 0; peer < size; ++peer) {
      if (peer != rank) stream(rank, peer);  // as a communicator does before its first call
    }
  }
}

void StreamRanks::begin(int rank) {
  for (int peer = 0; peer < size(); ++peer) {
    if (peer != rank) stream(rank, peer).begin(on(rank));
  }
}

void StreamRanks::end(int rank) {
  for (int peer = 0; peer < size(); ++peer) {
    if (peer != rank) stream(rank, peer).end(on(rank));
  }
}

void StreamRanks::begin() {
  for (int rank = 0; rank < size(); ++rank) begin(rank);
}

void StreamRanks::end() {
  for (int rank = 0; rank < size(); ++rank) end(rank);
}

std::byte StreamRanks::value(std::size_t i, int seed) {
  return static_cast<std::byte>(static_cast<int>(i % 251) + seed);
}

std::byte* StreamRanks::memory(int rank, std::size_t bytes, int seed, DriverKind kind) {
  std::byte* const made = driver(rank).make_memory(std::max<std::size_t>(bytes, 1), kind);
  for (std::size_t i = 0; i < bytes; ++i) made[i] = value(i, seed);
  return made;
}

bool StreamRanks::is_filled(const std::byte* memory, std::size_t bytes, int seed) {
  for (std::size_t i = 0; i < bytes; ++i) {
    if (memory[i] != value(i, seed)) return false;
  }
  return true;
}

void StreamRanks::copy(int rank, std::byte* to, const std::byte* from, std::size_t bytes) {
  driver(rank).launch(
      on(rank), {{to, bytes}, {from, bytes}},
      [bytes](const std::vector<std::byte*>& at) { std::copy(at[1], at[1] + bytes, at[0]); });
}

void StreamRanks::commit(int from, int to, const std::byte* data, std::size_t bytes) {
  std::byte* slot = nullptr;
  until([&] { return (slot = stream(from, to).reserve(on(from), bytes)) != nullptr; });
  copy(from, slot, data, bytes);
  stream(from, to).commit(on(from), kPlain);
}

void StreamRanks::view(int to, int from, std::byte* into, std::size_t bytes) {
  const std::byte* segment = nullptr;
  until([&] { return (segment = stream(to, from).view(on(to), bytes)) != nullptr; });
  copy(to, into, segment, bytes);
  stream(to, from).release(on(to));
}

void StreamRanks::send(int from, int to, std::span<const std::byte> data) {
  until([&] { return stream(from, to).send(on(from), data, kPlain); });
}

void StreamRanks::receive(int to, int from, std::span<std::byte> into) {
  until([&] { return stream(to, from).receive(on(to), into, kPlain); });
}

const std::byte* StreamRanks::view_sent(int to, int from, std::size_t bytes) {
  const std::byte* segment = nullptr;
  until([&] { return (segment = stream(to, from).view_sent(on(to), bytes)) != nullptr; });
  return segment;
}

void StreamRanks::until(const std::function<bool()>& is_done) {
  const Deadline deadline = soon();
  while (!is_done()) {
    if (Clock::now() > deadline) throw std::runtime_error("not done in a minute");
    machine.run();
    for (const FakeRank& rank : ranks) {
      if (rank.transport) rank.transport->progress();
    }
  }
}

Error StreamRanks::error_of_progress(int rank) {
  const Deadline deadline = soon();
  while (Clock::now() < deadline) {
    if (const auto error = error_of([&] { transport(rank).progress(); })) return *error;
  }
  throw std::runtime_error("no error in a minute");
}

}  // namespace kolo::test
