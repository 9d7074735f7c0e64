// Two connected ranks of this process, and unknown clients at every socket on which they listen:
// the transport's own and those of its library.
#pragma once

#include <sys/socket.h>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "test/transports/support/listening_sockets.h"
#include "transports/registry.h"

namespace kolo::test {

class RanksWithUnknownClients {
 public:
  using Make = std::function<std::unique_ptr<Transport>(const TransportRequest& request)>;

  explicit RanksWithUnknownClients(const Make& make) {
    const auto before = open_descriptors();
    const auto store = make_local_store();
    const auto request = [&](int rank) {
      return TransportRequest{rank, 2, store, Clock::now() + std::chrono::seconds(60), 0, 2};
    };
    std::thread other([&] { ranks_[1] = make(request(1)); });
    ranks_[0] = make(request(0));
    other.join();
    exchange();  // makes connections that are only made at their first use
    listeners_ = listening_since(before);
  }

  // Closes both at once: some transports wait for the other rank at their end.
  ~RanksWithUnknownClients() {
    std::thread other([&] { ranks_[1].reset(); });
    ranks_[0].reset();
    other.join();
  }
  RanksWithUnknownClients(const RanksWithUnknownClients&) = delete;
  RanksWithUnknownClients& operator=(const RanksWithUnknownClients&) = delete;

  const std::vector<ListeningSocket>& listeners() const { return listeners_; }

  // Connects a client to every listener, sends `speech`, and keeps the connection.
  void say_everywhere(std::string_view speech) {
    for (const ListeningSocket& listener : listeners_)
      unknown_clients_.push_back(speak_to(listener, speech));
  }

  void leave() { unknown_clients_.clear(); }

  // Whether exchanged data is intact while ten clients at every listener have sent `speech`, and
  // after they have left.
  bool withstands(std::string_view speech) {
    for (int i = 0; i < 10; ++i) say_everywhere(speech);
    const bool is_whole = exchange();
    leave();
    return exchange() && is_whole;
  }

  // Exchanges segments of several lengths in both directions; returns true if all data is intact.
  // Throws the transport's error, or an error if nothing moves for long.
  bool exchange() {
    bool is_whole = true;
    for (const std::size_t bytes : {std::size_t{8}, std::size_t{5000}, std::size_t{64} << 10})
      is_whole &= exchange(bytes);
    return is_whole;
  }

 private:
  using Bytes = std::vector<std::byte>;

  bool exchange(std::size_t bytes) {
    Bytes sent[2];
    Bytes got[2];
    bool is_sent[2] = {};
    bool is_got[2] = {};
    for (int rank : {0, 1}) {
      const auto i = static_cast<std::size_t>(rank);
      for (std::size_t at = 0; at < bytes; ++at)
        sent[i].push_back(static_cast<std::byte>(random_()));
      got[i].resize(bytes);
    }
    const auto deadline = Clock::now() + std::chrono::seconds(60);
    while (!(is_got[0] && is_got[1] && ranks_[0]->channel(1).is_drained() &&
             ranks_[1]->channel(0).is_drained())) {
      if (Clock::now() > deadline) throw std::runtime_error("nothing has moved for a minute");
      for (std::size_t i : {0u, 1u}) {
        Channel& channel = ranks_[i]->channel(1 - static_cast<int>(i));
        is_sent[i] = is_sent[i] || channel.send(sent[i]);
        is_got[i] = is_got[i] || channel.receive(got[i]);
        ranks_[i]->progress();
      }
      std::this_thread::yield();
    }
    return got[0] == sent[1] && got[1] == sent[0];
  }

  std::mt19937 random_{1};
  std::unique_ptr<Transport> ranks_[2];
  std::vector<ListeningSocket> listeners_;
  std::vector<posix::Descriptor> unknown_clients_;
};

// Messages of clients that know nothing about the listener.
inline std::vector<std::string> unknown_client_messages() {
  std::mt19937 random(7);
  std::string noise(40'000, '\0');
  for (char& each : noise) each = static_cast<char>(random());
  return {"",
          "\n",
          "GET / HTTP/1.1\r\nHost: example.org\r\n\r\n",
          "SSH-2.0-OpenSSH_9.2\r\n",
          std::string(64, '\0'),
          std::string(4096, '\xff'),
          noise.substr(0, 16),
          noise.substr(16, 200),
          noise};
}

}  // namespace kolo::test
