// Connecting to a TCP store: places and addresses are tried in turn, until the deadline.
#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <thread>

#include "transports/error.h"
#include "transports/posix/host/identity.h"
#include "transports/posix/socket.h"
#include "transports/rendezvous.h"
#include "transports/store/tcp_client.h"

namespace kolo::inline v0 {

namespace {

using namespace std::chrono_literals;

constexpr auto kRetryEvery = 50ms;
// Among several places: for one address to accept, and for its server to answer. A place may be an
// address that leads nowhere, or belong to a program that says nothing.
constexpr Clock::duration kForOnePlace = 1s;

// Makes one attempt at one address. Returns 0 or errno.
int try_to_connect(const posix::Address& address, Deadline deadline, posix::Descriptor& socket) {
  socket = posix::start_connecting(address);
  if (!socket.is_open() || (errno != 0 && errno != EINPROGRESS)) return errno;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
  const auto wait_ms = std::clamp<std::chrono::milliseconds>(left, 0ms, 1h).count();
  pollfd watched{socket.get(), POLLOUT, 0};
  if (errno == EINPROGRESS && ::poll(&watched, 1, static_cast<int>(wait_ms)) <= 0) return ETIMEDOUT;
  return posix::connect_result(socket);
}

// "node1:29500"; ports of one host in a row are "node1:29500-29507".
std::string describe(const StorePlaces& at) {
  std::string text;
  const auto& places = at.places;
  for (std::size_t first = 0, last = 0; first < places.size(); first = last + 1) {
    last = first;
    while (last + 1 < places.size() && places[last + 1].host == places[first].host) ++last;
    text +=
        (text.empty() ? "" : ", ") + posix::host_and_port(places[first].host, places[first].port);
    if (last > first) text += fmt::format("-{}", places[last].port);
  }
  return text;
}

std::string what_to_do(const StorePlaces& at, int server) {
  if (server == kNoPeer)
    return "start the process that serves it (the launcher), open this port in the firewall of its "
           "host, or correct KOLO_STORE";
  const std::string& host = at.places.front().host;
  return fmt::format(
      "start rank {}, which serves it (if the job has failed, see its last output), open this port "
      "in the firewall of its host, or {} MASTER_ADDR and MASTER_PORT{}",
      server, at.job.empty() ? "correct" : "choose another place by",
      posix::is_loopback_only(host)
          ? fmt::format(": {} is this host, {}, and rank 0 may run on another one", host,
                        posix::host_name())
          : "");
}

class Attempt {
 public:
  Attempt(const StorePlaces& at, Deadline deadline, int server, const PastJobs* past)
      : at_(at),
        is_one_(at.places.size() == 1),
        deadline_(deadline),
        server_(server),
        past_(past) {}

  // Null if no place has the store now.
  std::shared_ptr<Store> try_all() {
    std::string host;
    std::vector<posix::Address> addresses;
    for (const auto& place : at_.places) {
      if (addresses.empty() || host != place.host)
        addresses = posix::resolve(place.host, 0, why_, deadline_);
      host = place.host;
      for (posix::Address& address : addresses) {
        address.set_port(place.port);
        if (auto store = try_one(address, posix::host_and_port(host, place.port))) return store;
      }
    }
    return nullptr;
  }

  [[noreturn]] void fail() const {
    const std::chrono::duration<double> waited = Clock::now() - start_;
    throw Error(ErrorCode::kDeadline, kNoPeer,
                fmt::format("waited {:.1f} s for the store at {} ({}): {}", waited.count(),
                            describe(at_), why_, what_to_do(at_, server_)));
  }

 private:
  std::shared_ptr<Store> try_one(const posix::Address& address, const std::string& name) {
    const Deadline by = is_one_ ? deadline_ : std::min(deadline_, Clock::now() + kForOnePlace);
    posix::Descriptor socket;
    const bool has_time = by - Clock::now() >= kForOnePlace;
    if (const int error = try_to_connect(address, by, socket); error != 0) {
      // Keeps the earlier reason if this last attempt had no time for an answer.
      if (error != ETIMEDOUT || has_time || why_.empty()) why_ = posix::connect_error_text(error);
      return nullptr;
    }
    try {
      return tcp_store_over(std::move(socket), name,
                            {deadline_, start_, by, server_, at_.job, past_}, why_);
    } catch (const Error& error) {
      // An earlier reason is better than a last attempt without time for the hello.
      const bool is_known = error.code() == ErrorCode::kDeadline && why_.starts_with(kStillServes);
      if (is_one_ && !is_known) throw;
      if (!is_known) why_ = error.what();
    }
    return nullptr;
  }

  const StorePlaces& at_;
  const bool is_one_;
  const Deadline deadline_;
  const int server_;
  const PastJobs* const past_;
  const Clock::time_point start_ = Clock::now();
  std::string why_;
};

}  // namespace

std::shared_ptr<Store> connect_tcp_store(const StorePlaces& at, Deadline deadline, int server,
                                         const PastJobs* past) {
  Attempt attempt(at, deadline, server, past);
  do {
    if (auto store = attempt.try_all()) return store;
    std::this_thread::sleep_until(std::min<Deadline>(deadline, Clock::now() + kRetryEvery));
  } while (Clock::now() < deadline);
  attempt.fail();
}

std::shared_ptr<Store> connect_tcp_store(const std::string& host, std::uint16_t port,
                                         Deadline deadline, int server, const PastJobs* past) {
  return connect_tcp_store({{{host, port}}}, deadline, server, past);
}

}  // namespace kolo::inline v0
