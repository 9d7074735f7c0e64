// TCP over loopback, busy-polled: what is left when only the kernel is in the way.
//
// Floor of a two-rank all-reduce: each rank sends n bytes and receives n (half of them twice over),
// so it takes no less than n both ways at once. Half-size messages that stay in cache have been
// seen to beat it by a little.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>
#include <stdexcept>
#include <thread>

#include "bench/cache_line.h"
#include "bench/limits/limits.h"
#include "bench/limits/team.h"
#include "bench/sizes.h"
#include "transports/posix/descriptor.h"

namespace kolo::bench {
namespace {

using posix::Descriptor;
using Pair = std::array<Descriptor, 2>;

constexpr std::size_t kLargestCall = 512 * 1024;
constexpr int kRoundTrips = 200;
constexpr int kPolls = 500;

// `congestion`: a congestion control of the kernel; empty for the machine's own.
Pair connected_pair(const std::string& congestion) {
  const Descriptor listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
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
  if (connect(pair[0].get(), generic, length) != 0)
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

// Sends all of one buffer and fills all of the other, whichever is possible.
void exchange(int socket, const std::vector<char>& out, std::vector<char>& in) {
  std::size_t sent = 0;
  std::size_t received = 0;
  int fruitless = 0;
  while (sent < out.size() || received < in.size()) {
    const std::size_t before = sent + received;
    if (sent < out.size()) {
      const std::size_t bytes = std::min(kLargestCall, out.size() - sent);
      sent += moved(send(socket, out.data() + sent, bytes, MSG_NOSIGNAL));
    }
    if (received < in.size()) {
      const std::size_t bytes = std::min(kLargestCall, in.size() - received);
      received += moved(recv(socket, in.data() + received, bytes, 0));
    }
    fruitless = sent + received == before ? fruitless + 1 : 0;
    if (fruitless > kPolls)
      std::this_thread::yield();  // the other's core is taken by somebody else
  }
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

Row measure(std::size_t bytes, const std::string& congestion, bool is_machine_default,
            double seconds) {
  const Pair pair = connected_pair(is_machine_default ? "" : congestion);
  std::vector<char> out[2], in[2];
  for (int side = 0; side < 2; ++side) {
    out[side].assign(bytes, 1);
    in[side].assign(bytes, 0);
  }
  const Round round{
      [&](int side) { std::fill(out[side].begin(), out[side].end(), 'x'); },
      [&](int side) { exchange(pair[static_cast<std::size_t>(side)].get(), out[side], in[side]); }};
  const double once = time_together(2, 2, round).back();
  const std::vector<double> times = time_together(2, rounds_for(seconds, once), round);
  Row row;
  row.library = "floor";
  row.transport = "tcp";
  row.algorithm = "both ways, " + congestion;
  row.collective = "allreduce";
  row.problem.count = bytes / sizeof(float);
  row.ranks = 2;
  row.bytes = bytes;
  row.iterations = times.size();
  row.time_us = quantiles(times);
  return row;
}

}  // namespace

Row quickest_tcp_floor(std::size_t bytes, double seconds) {
  std::vector<Row> rows;
  const auto controls = congestion_controls();
  for (const std::string& congestion : controls) {
    rows.push_back(measure(bytes, congestion, congestion == controls.front(),
                           seconds / static_cast<double>(controls.size())));
  }
  return *std::ranges::min_element(rows, {}, [](const Row& row) { return row.time_us.median; });
}

std::vector<Row> tcp_floors(bool is_quick) {
  std::vector<Row> rows;
  const std::size_t largest = is_quick ? std::size_t{2} << 20 : std::size_t{256} << 20;
  const auto controls = congestion_controls();
  for (const std::string& congestion : controls) {
    for (const std::size_t bytes : sweep(8, largest, 4, 8)) {
      const double line_us = cache_line_round_trip();
      rows.push_back(
          measure(bytes, congestion, congestion == controls.front(), is_quick ? 0.1 : 0.4));
      rows.back().cache_line_us = line_us;
    }
  }
  return rows;
}

std::vector<Limit> tcp_round_trips() {
  const Pair pair = connected_pair("");
  const std::vector<char> word(8, 'x');
  std::vector<char> into[2] = {word, word};
  std::vector<char> nothing;
  const Round round{[](int) {},
                    [&](int side) {
                      const int socket = pair[static_cast<std::size_t>(side)].get();
                      for (int i = 0; i < kRoundTrips; ++i) {
                        if (side == 0) exchange(socket, word, nothing);
                        exchange(socket, {}, into[side]);
                        if (side == 1) exchange(socket, word, nothing);
                      }
                    }};
  std::vector<double> times = time_together(2, 100, round);
  for (double& time : times) time /= kRoundTrips;
  return {{"tcp round trip", "8 bytes, busy-polled", 8, quantiles(times), 0}};
}

}  // namespace kolo::bench
