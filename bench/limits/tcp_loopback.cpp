// TCP over loopback, busy-polled: only the kernel's costs remain.
//
// Floor of a two-rank all-reduce: each rank sends n bytes and receives n, so it takes at least the
// time of n bytes both ways at once. Half-size messages that stay in cache can be slightly faster.
// Other collectives of two ranks: half of n each way; broadcast, reduce and scans all one way;
// gather and scatter half one way; barrier 8 bytes each way.
//
// A second program also adds, which an all-reduce must do and a floor of bytes does not. Its sums
// go elsewhere, so that nothing is copied before it is sent. A piece is added when it arrives,
// while it is in cache.
//
// Bound for more ranks: all bytes that the ranks must send together, both ways between pairs of
// cores, one connection per pair: 2 (n - 1) times the data for an all-reduce, (n - 1) / n times for
// gather and scatter, n - 1 times for the others.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <limits>
#include <span>
#include <stdexcept>
#include <thread>

#include "bench/cli/sizes.h"
#include "bench/limits/limits.h"
#include "bench/limits/thread_team.h"
#include "bench/measure/cache_line.h"
#include "bench/measure/cores.h"
#include "transports/posix/descriptor.h"

namespace kolo::bench {
namespace {

using posix::Descriptor;
using Pair = std::array<Descriptor, 2>;

// Maximum bytes of a call: both ways shorter calls are faster, as they overlap; one way whole ones
// are.
constexpr std::size_t kShortCall = 512 * 1024;
constexpr std::size_t kWholeCall = std::size_t{1} << 30;
constexpr std::size_t kRoundTrips = 200;
constexpr int kPolls = 500;

// `congestion` is a congestion control of the kernel; empty: the machine's default.
Pair connected_pair(const std::string& congestion) {
  const Descriptor listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!listener.is_open()) posix::throw_system("kolo-bench: a socket on 127.0.0.1");
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  socklen_t length = sizeof address;
  if (bind(listener.get(), generic, length) != 0 || listen(listener.get(), 1) != 0 ||
      getsockname(listener.get(), generic, &length) != 0) {
    posix::throw_system("kolo-bench: a socket on 127.0.0.1");
  }
  Pair pair;
  pair[0] = Descriptor(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!pair[0].is_open() || connect(pair[0].get(), generic, length) != 0)
    posix::throw_system("kolo-bench: connect to 127.0.0.1");
  pair[1] = Descriptor(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!pair[1].is_open()) posix::throw_system("kolo-bench: accept on 127.0.0.1");
  const int yes = 1;
  for (const Descriptor& side : pair) {
    setsockopt(side.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    if (!congestion.empty()) {
      setsockopt(side.get(), IPPROTO_TCP, TCP_CONGESTION, congestion.data(),
                 static_cast<socklen_t>(congestion.size()));
    }
    fcntl(side.get(), F_SETFL, O_NONBLOCK);
  }
  return pair;
}

std::size_t moved(ssize_t result) {
  if (result > 0) return static_cast<std::size_t>(result);
  if (result == 0)
    throw std::runtime_error("kolo-bench: the other end of a loopback connection is gone");
  if (errno == EAGAIN || errno == EINTR) return 0;
  posix::throw_system("kolo-bench: moving bytes over loopback");
}

// Ignores received data.
constexpr auto kLeftAsItIs = [](std::size_t) {};

// Sends and receives the given numbers of bytes, whichever is possible, through buffers that are
// reused cyclically. `take` gets the number of received bytes whenever more have arrived.
template <typename Take>
void exchange(int socket, std::span<const char> out, std::size_t to_send, std::span<char> in,
              std::size_t to_receive, const Take& take, std::size_t most = kShortCall) {
  std::size_t sent = 0;
  std::size_t received = 0;
  int fruitless = 0;
  while (sent < to_send || received < to_receive) {
    const std::size_t before = sent + received;
    if (sent < to_send) {
      const std::size_t at = sent % out.size();
      const std::size_t bytes = std::min({most, out.size() - at, to_send - sent});
      sent += moved(send(socket, out.data() + at, bytes, MSG_NOSIGNAL));
    }
    if (received < to_receive) {
      const std::size_t at = received % in.size();
      const std::size_t bytes = std::min({most, in.size() - at, to_receive - received});
      const std::size_t more = moved(recv(socket, in.data() + at, bytes, 0));
      received += more;
      if (more > 0) take(received);
    }
    fruitless = sent + received == before ? fruitless + 1 : 0;
    if (fruitless > kPolls) std::this_thread::yield();  // another program may have the other core
  }
}

// Bytes over one connection in each direction, and the buffer length.
struct Traffic {
  int pairs = 1;               // connections at once, each on two cores
  std::size_t from_first = 0;  // bytes
  std::size_t from_second = 0;
  std::size_t buffer = 0;

  std::size_t from(int side) const { return side == 0 ? from_first : from_second; }
};

// Whether two ranks send all data in one direction.
bool goes_one_way(Collective collective) {
  return collective == Collective::kBroadcast || collective == Collective::kReduce ||
         collective == Collective::kScan || collective == Collective::kExclusiveScan;
}

Traffic traffic_of(const FloorRequest& request) {
  constexpr std::size_t kBarrierBytes = 8;
  const std::size_t bytes = request.bytes;
  if (request.collective == Collective::kBarrier)
    return {1, kBarrierBytes, kBarrierBytes, kBarrierBytes};
  const bool is_all_reduce = request.collective == Collective::kAllReduce;
  const bool has_shares =
      request.collective == Collective::kGather || request.collective == Collective::kScatter;
  if (request.ranks == 2) {
    if (is_all_reduce) return {1, bytes, bytes, bytes};
    if (goes_one_way(request.collective)) return {1, bytes, 0, bytes};
    return {1, bytes / 2, has_shares ? 0 : bytes / 2, bytes / 2};
  }
  const int cores = static_cast<int>(available_cores().size());
  const int pairs = std::max(1, std::min(cores, request.ranks) / 2);
  const auto others = static_cast<std::size_t>(request.ranks - 1);
  const std::size_t all = (is_all_reduce ? 2 : 1) * others *
                          (has_shares ? bytes / static_cast<std::size_t>(request.ranks) : bytes);
  const std::size_t each_way = std::max<std::size_t>(1, all / 2 / static_cast<std::size_t>(pairs));
  return {pairs, each_way, each_way, std::min(each_way, bytes)};
}

// The machine's congestion control, and reno, which needs no privilege and may be faster over
// loopback.
std::vector<std::string> congestion_controls() {
  std::string machine;
  std::ifstream("/proc/sys/net/ipv4/tcp_congestion_control") >> machine;
  if (machine.empty()) machine = "default";
  if (machine == "reno") return {machine};
  return {machine, "reno"};
}

// Uses two threads for each pair of sockets.
Row measure(const FloorRequest& request, const std::string& congestion, bool is_machine_default,
            std::size_t call, double seconds) {
  const Traffic traffic = traffic_of(request);
  const auto threads = static_cast<std::size_t>(2 * traffic.pairs);
  std::vector<Pair> pairs;
  for (int i = 0; i < traffic.pairs; ++i)
    pairs.push_back(connected_pair(is_machine_default ? "" : congestion));
  std::vector<std::vector<char>> out(threads, std::vector<char>(traffic.buffer, 1));
  std::vector<std::vector<char>> in = out;
  const Round round{[&](int thread) {
                      if (traffic.from(thread % 2) > 0)
                        std::ranges::fill(out[static_cast<std::size_t>(thread)], 'x');
                    },
                    [&](int thread) {
                      const auto self = static_cast<std::size_t>(thread);
                      exchange(pairs[self / 2][self % 2].get(), out[self], traffic.from(thread % 2),
                               in[self], traffic.from(1 - thread % 2), kLeftAsItIs, call);
                    }};
  return floor_row(request, "tcp",
                   (traffic.from_second > 0 ? "both ways, " : "one way, ") + congestion +
                       (call > kShortCall ? ", whole" : ""),
                   static_cast<int>(threads), seconds, round);
}

// The all-reduce of two ranks with addition; the sums are checked.
class Adding {
 public:
  Adding(std::size_t bytes, const std::string& congestion)
      : count_(bytes / sizeof(float)), pair_(connected_pair(congestion)) {
    for (Side& side : sides_) {
      side.own.resize(count_ * sizeof(float));
      side.taken.resize(side.own.size());
      side.sums.resize(count_);
    }
  }

  void rewrite(int rank) {
    Side& side = sides_[static_cast<std::size_t>(rank)];
    const float value = static_cast<float>(rank + 1);
    for (std::size_t i = 0; i < count_; ++i)
      std::memcpy(side.own.data() + i * sizeof value, &value, sizeof value);
  }

  void run(int rank) {
    Side& side = sides_[static_cast<std::size_t>(rank)];
    const std::size_t bytes = side.own.size();
    std::size_t added = 0;
    exchange(pair_[static_cast<std::size_t>(rank)].get(), side.own, bytes, side.taken, bytes,
             [&](std::size_t received) {
               for (const std::size_t whole = received / sizeof(float); added < whole; ++added) {
                 float own = 0;
                 float taken = 0;
                 std::memcpy(&own, side.own.data() + added * sizeof own, sizeof own);
                 std::memcpy(&taken, side.taken.data() + added * sizeof taken, sizeof taken);
                 side.sums[added] = own + taken;
               }
             });
  }

  std::size_t wrong() const {
    std::size_t all = 0;
    for (const Side& side : sides_)
      all += count_ - static_cast<std::size_t>(std::ranges::count(side.sums, 3.0F));
    return all;
  }

 private:
  struct Side {
    std::vector<char> own;
    std::vector<char> taken;
    std::vector<float> sums;
  };

  std::size_t count_;
  Pair pair_;
  std::array<Side, 2> sides_;
};

// Messages there and back, one after the other, at consecutive places in memory.
class PingPong {
 public:
  PingPong(const std::string& congestion, std::size_t bytes, std::size_t window)
      : bytes_(bytes), pair_(connected_pair(congestion)), out_(bytes * window) {
    in_ = {out_, out_};
  }

  // Writes other bytes than in the previous round.
  void rewrite() {
    wrong_ = wrong();
    ++byte_;
    std::ranges::fill(out_, byte_);
  }

  // Bytes that came back different from what was sent, over all rounds.
  std::uint64_t wrong() const {
    const auto right = std::ranges::count(in_[0], byte_);
    return wrong_ + in_[0].size() - static_cast<std::size_t>(right);
  }

  void run(int side) {
    const int socket = pair_[static_cast<std::size_t>(side)].get();
    std::vector<char>& in = in_[static_cast<std::size_t>(side)];
    for (std::size_t first = 0; first < in.size(); first += bytes_) {
      const std::span<char> taken = std::span(in).subspan(first, bytes_);
      if (side == 0)
        exchange(socket, std::span(out_).subspan(first, bytes_), bytes_, taken, 0, kLeftAsItIs);
      exchange(socket, {}, 0, taken, bytes_, kLeftAsItIs);
      if (side == 1) exchange(socket, taken, bytes_, taken, 0, kLeftAsItIs);
    }
  }

 private:
  std::size_t bytes_;
  Pair pair_;
  std::vector<char> out_;
  std::array<std::vector<char>, 2> in_;
  char byte_ = 0;
  std::uint64_t wrong_ = 0;
};

}  // namespace

Row tcp_floor(const FloorRequest& request, double seconds) {
  std::vector<Row> rows;
  const auto controls = congestion_controls();
  std::vector<std::size_t> calls = {kShortCall};
  if (traffic_of(request).buffer > kShortCall) calls.push_back(kWholeCall);
  const double each = seconds / static_cast<double>(controls.size() * calls.size());
  for (const std::string& congestion : controls) {
    for (const std::size_t call : calls)
      rows.push_back(measure(request, congestion, congestion == controls.front(), call, each));
  }
  return *std::ranges::min_element(rows, {}, [](const Row& row) { return row.time_us.median; });
}

Row tcp_adding(std::size_t bytes, const std::string& congestion, double seconds) {
  Adding adding(bytes, congestion);
  const Round round{[&](int rank) { adding.rewrite(rank); }, [&](int rank) { adding.run(rank); }};
  Row row = floor_row({Collective::kAllReduce, 2, bytes}, "tcp",
                      "both ways and added, " + (congestion.empty() ? "default" : congestion), 2,
                      seconds, round);
  row.wrong = adding.wrong();
  return row;
}

std::vector<Row> tcp_all_reduce_floors(bool is_quick) {
  const double seconds = is_quick ? 0.02 : 0.4;
  std::vector<Row> rows;
  const std::size_t largest = is_quick ? std::size_t{2} << 20 : std::size_t{256} << 20;
  const auto controls = congestion_controls();
  for (const std::string& congestion : controls) {
    for (const std::size_t bytes : sweep(8, largest, 4, 8)) {
      rows.push_back(measure({Collective::kAllReduce, 2, bytes}, congestion,
                             congestion == controls.front(), kShortCall, seconds));
    }
  }
  for (const std::size_t bytes : sweep(8, largest, 4, 8))
    rows.push_back(tcp_adding(bytes, controls.back(), seconds));
  return rows;
}

MessagesFloor tcp_latency_floor(const MessagesRequest& request, double seconds) {
  const auto controls = congestion_controls();
  const double each = seconds / static_cast<double>(controls.size());
  MessagesFloor least{std::numeric_limits<double>::infinity(), 0};
  for (const std::string& congestion : controls) {
    PingPong game(congestion == controls.front() ? "" : congestion, request.bytes, request.window);
    const auto prepare = [&](int side) {
      if (side == 0) game.rewrite();
    };
    const auto run = [&](int side) { game.run(side); };
    const double us = quantiles(time_for(2, each, {prepare, run})).median;
    least.time_us = std::min(least.time_us, us / 2 / static_cast<double>(request.window));
    least.wrong += game.wrong();
  }
  return least;
}

std::vector<Limit> tcp_round_trips() {
  PingPong game("", 8, kRoundTrips);
  const Round round{{}, [&](int side) { game.run(side); }};
  CoreDistance distance;
  distance.add(cache_line_round_trip());
  std::vector<double> times = time_together(2, 100, round);
  distance.add(cache_line_round_trip());
  for (double& time : times) time /= static_cast<double>(kRoundTrips);
  return {{"tcp round trip", "8 bytes, busy-polled", 8, quantiles(times), 0, distance}};
}

}  // namespace kolo::bench
