#include "test/train/program/started_ranks.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <stdexcept>
#include <utility>

namespace kolo::test {

Port::Port(Use use) : socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int yes = 1;
  setsockopt(socket_, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  const bool is_bound =
      bind(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  if (!is_bound || (use == Use::kTaken && listen(socket_, 8) != 0)) {
    throw std::runtime_error("no port on 127.0.0.1");
  }
}

Port::~Port() { close(socket_); }

std::string Port::number() const {
  sockaddr_in address{};
  socklen_t length = sizeof address;
  getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &length);
  return std::to_string(ntohs(address.sin_port));
}

Start rank_start(const Folder& folder, Words arguments, int rank, int size, const Port& port) {
  Start start = folder.start(std::move(arguments));
  start.variables["RANK"] = std::to_string(rank);
  start.variables["WORLD_SIZE"] = std::to_string(size);
  start.variables["MASTER_ADDR"] = "127.0.0.1";
  start.variables["MASTER_PORT"] = port.number();
  return start;
}

StartedRanks::StartedRanks(const Folder& folder, const Words& arguments, int size) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), 0) != 0) throw std::runtime_error("no pipe");
  events_ = ends[0];
  fcntl(events_, F_SETFD, FD_CLOEXEC);
  Words words = arguments;
  words.push_back("--events-fd=" + std::to_string(ends[1]));
  for (int rank = 0; rank < size; ++rank) {
    ranks_.emplace_back(rank_start(folder, words, rank, size, port_));
  }
  close(ends[1]);
}

StartedRanks::~StartedRanks() { close(events_); }

void StartedRanks::wait_for_event(const std::string& text) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  std::string events;
  while (events.find(text) == std::string::npos) {
    pollfd waiting{events_, POLLIN, 0};
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    std::array<char, 4096> block{};
    const bool is_there = left.count() > 0 && poll(&waiting, 1, static_cast<int>(left.count())) > 0;
    const ssize_t count = is_there ? read(events_, block.data(), block.size()) : 0;
    if (count <= 0) throw std::runtime_error("no event '" + text + "' after:\n" + events);
    events.append(block.data(), static_cast<std::size_t>(count));
  }
}

}  // namespace kolo::test
