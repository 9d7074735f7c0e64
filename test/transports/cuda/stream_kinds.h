// Table of the transports whose channels have a stream form, for the stream clauses
// (stream_clauses.h), and ranks of them over a fake machine that a test controls.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "test/transports/cuda/fake_ranks.h"
#include "transports/base/staged.h"
#include "transports/error.h"

namespace kolo::test {

struct StreamKind {
  std::string_view name;
  std::string_view host;  // the underlying transport
  bool is_staged = true;

  bool joins_processes() const { return host != "inproc"; }
};

// The kinds whose transport is in this build.
std::vector<StreamKind> stream_kinds();

inline constexpr std::size_t kStreamSegment = 4096;  // the longest slot of all kinds

// Ranks with a stream each; one thread runs them in turn.
class StreamRanks {
 public:
  using Adjust = std::function<void(int rank, StagedSettings& settings)>;
  using DriverKind = FakeDriver::Kind;

  // `adjust` changes the settings of staged ranks. kWhenTold: the device works only during until(),
  // or when the test runs it.
  explicit StreamRanks(const StreamKind& kind, int size = 2, const Adjust& adjust = nullptr,
                       FakeMachine::Runs runs = FakeMachine::Runs::kAtOnce);
  ~StreamRanks() { close(); }

  int size() const { return static_cast<int>(ranks.size()); }
  FakeDriver& driver(int rank) { return *ranks[index(rank)].driver; }
  Transport& transport(int rank) { return *ranks[index(rank)].transport; }
  Channel& channel(int rank, int peer) { return transport(rank).channel(peer); }
  StreamChannel& stream(int rank, int peer) { return *channel(rank, peer).stream(); }
  cuda::Stream on(int rank) const { return streams[index(rank)]; }

  // On all channels of all ranks, or of one rank.
  void begin();
  void end();
  void begin(int rank);
  void end(int rank);
  void close() {
    machine.run_at_once();
    close_together(ranks);
  }

  // Device memory of a rank, and its fill pattern.
  std::byte* memory(int rank, std::size_t bytes, int seed, DriverKind kind = DriverKind::kDevice);
  static std::byte value(std::size_t i, int seed);
  static bool is_filled(const std::byte* memory, std::size_t bytes, int seed);

  // Work of the caller on the rank's stream.
  void copy(int rank, std::byte* to, const std::byte* from, std::size_t bytes);

  // Each retries until the call is accepted.
  void commit(int from, int to, const std::byte* data, std::size_t bytes);
  void view(int to, int from, std::byte* into, std::size_t bytes);
  void send(int from, int to, std::span<const std::byte> data);
  void receive(int to, int from, std::span<std::byte> into);
  const std::byte* view_sent(int to, int from, std::size_t bytes);

  // Makes progress on all ranks until `is_done` holds; fails after a minute.
  void until(const std::function<bool()>& is_done);
  // Runs until the streams have done all enqueued work.
  void finish() {
    until([this] { return machine.run(); });
  }
  // The error that a rank's progress() finally throws.
  Error error_of_progress(int rank);

  FakeMachine machine;
  std::vector<FakeRank> ranks;
  std::vector<cuda::Stream> streams;

 private:
  static std::size_t index(int rank) { return static_cast<std::size_t>(rank); }
};

// The kolo::Error that `body` throws, if any.
std::optional<Error> error_of(const std::function<void()>& body);

// A transport for host memory with a staged stream form, over a driver of its own.
std::unique_ptr<Transport> stage(std::unique_ptr<Transport> host,
                                 const std::shared_ptr<FakeDriver>& driver,
                                 const std::function<void(StagedSettings&)>& adjust = nullptr);

// Ranks of a transport of this build.
std::vector<std::unique_ptr<Transport>> make_hosts(std::string_view name, int size);

}  // namespace kolo::test
