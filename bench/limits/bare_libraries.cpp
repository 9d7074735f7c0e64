// Bare UCX and libfabric between two cores, each measured alone: references for the transports over
// them. p2p --level library measures them in turn with the transports.
#include <array>
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "bench/limits/limits.h"
#include "bench/limits/thread_team.h"
#include "bench/measure/cache_line.h"
#include "bench/p2p/pipe.h"
#include "transports/rendezvous.h"

namespace kolo::bench {
namespace {

constexpr int kRanks = 2;
constexpr int kRoundTrips = 20;
constexpr std::size_t kShort = 8;
constexpr std::size_t kLong = std::size_t{1} << 20;
constexpr std::size_t kWindow = 8;

struct BareLibrary {
  std::string name;  // "libfabric, shm"
  PipeRequest request;
};

std::vector<BareLibrary> known_libraries() {
  std::vector<BareLibrary> libraries;
  PipeRequest request;
  request.transport = "ucx";
  libraries.push_back({"ucx", request});
  request.transport = "ofi";
  if (bare_libfabric_providers().empty()) libraries.push_back({"libfabric", request});
  for (const std::string& provider : bare_libfabric_providers()) {
    request.library_provider = provider;
    libraries.push_back({"libfabric, " + provider, request});
  }
  return libraries;
}

// Two ends in this process, connected through a local store.
class Ends {
 public:
  explicit Ends(PipeRequest request) {
    request.store = make_local_store();
    std::array<std::exception_ptr, kRanks> failures;
    on_both([&](std::size_t rank) {
      try {
        PipeRequest own = request;
        own.rank = static_cast<int>(rank);
        pipes_[rank] = make_library_pipe(own);
      } catch (const std::exception& error) {
        failures[rank] = std::current_exception();
        request.store->post_failure(error.what());  // so that the other end does not wait
      }
    });
    for (const auto& failure : failures) {
      if (failure == nullptr) continue;
      close();
      std::rethrow_exception(failure);
    }
  }
  ~Ends() { close(); }
  Ends(const Ends&) = delete;
  Ends& operator=(const Ends&) = delete;

  Pipe& operator[](int rank) { return *pipes_[static_cast<std::size_t>(rank)]; }

 private:
  template <typename Body>
  static void on_both(const Body& body) {
    std::thread other([&] { body(1); });
    body(0);
    other.join();
  }
  // Both ends close together, as they were opened.
  void close() noexcept {
    on_both([&](std::size_t rank) { pipes_[rank].reset(); });
  }

  std::array<std::unique_ptr<Pipe>, kRanks> pipes_;
};

Limit limit_of(std::string what, std::string how, std::size_t bytes, int operations,
               const std::vector<double>& rounds, const CoreDistance& distance) {
  std::vector<double> times = rounds;
  for (double& time : times) time /= operations;
  Limit limit{std::move(what), std::move(how), bytes, quantiles(times), 0, distance};
  if (bytes >= kLong)
    limit.gigabytes_per_second = static_cast<double>(bytes) / 1e3 / limit.time_us.median;
  return limit;
}

Limit round_trip(const std::string& name, Ends& ends, double seconds) {
  std::array<std::array<std::byte, kShort>, kRanks> words{};
  const Round round{{}, [&](int rank) {
                      const Messages word{words[static_cast<std::size_t>(rank)].data(), kShort, 1};
                      for (int i = 0; i < kRoundTrips; ++i) {
                        if (rank == 0) ends[rank].exchange(word, {});
                        ends[rank].exchange({}, word);
                        if (rank == 1) ends[rank].exchange(word, {});
                      }
                    }};
  CoreDistance distance;
  distance.add(cache_line_round_trip());
  const auto times = time_for(kRanks, seconds, round);
  distance.add(cache_line_round_trip());
  return limit_of(name, "8 bytes there and back", kShort, kRoundTrips, times, distance);
}

// One way, until an acknowledgement of the last message.
Limit stream(const std::string& name, Ends& ends, double seconds) {
  std::array<std::vector<std::byte>, kRanks> memory;
  for (auto& each : memory) each.resize(kWindow * kLong);
  std::array<std::byte, kShort> words[kRanks]{};
  const Round round{
      {}, [&](int rank) {
        const Messages window{memory[static_cast<std::size_t>(rank)].data(), kLong, kWindow};
        const Messages word{words[rank].data(), kShort, 1};
        ends[rank].exchange(rank == 0 ? window : Messages{}, rank == 1 ? window : Messages{});
        ends[rank].exchange(rank == 1 ? word : Messages{}, rank == 0 ? word : Messages{});
      }};
  CoreDistance distance;
  distance.add(cache_line_round_trip());
  const auto times = time_for(kRanks, seconds, round);
  distance.add(cache_line_round_trip());
  return limit_of(name, "stream, 8 messages one way", kLong, kWindow, times, distance);
}

}  // namespace

std::vector<Limit> library_limits(bool is_quick) {
  const double seconds = is_quick ? 0.02 : 0.3;
  std::vector<Limit> limits;
  for (const BareLibrary& library : known_libraries()) {
    try {
      Ends ends(library.request);
      limits.push_back(round_trip(library.name, ends, seconds));
      limits.push_back(stream(library.name, ends, seconds));
    } catch (const std::exception& error) {
      std::cerr << "kolo-bench: limits leaves out " << library.name << ": " << error.what() << '\n';
    }
  }
  return limits;
}

}  // namespace kolo::bench
