// Bootstrap by an all-gather of the caller: rank 0 serves the store and sends its address.
//
// The exchanged record has a fixed length. Rank 0's text is the store's address, or an error.
#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <exception>
#include <utility>
#include <vector>

#include "transports/base/check.h"
#include "transports/bootstrap.h"
#include "transports/error.h"
#include "transports/launch/announcement.h"

namespace kolo::inline v0 {

namespace {

constexpr std::string_view kFailed = "failed: ";

using Record = std::array<char, 2048>;

struct Served {
  std::shared_ptr<TcpStoreServer> server;
  std::string text;
};

// Returns an error as a text, so that all ranks call the all-gather and learn of the error.
Served serve(int size) {
  try {
    const std::string job = launch::random_name();
    auto server = std::make_shared<TcpStoreServer>("", std::uint16_t{0}, size, job);
    StorePlaces at = launch::places_of_this_host(server->port(), false);
    at.job = job;
    std::string text = launch::to_text(at);
    while (text.size() >= sizeof(Record)) text.resize(text.rfind(','));
    return {std::move(server), std::move(text)};
  } catch (const std::exception& error) {
    return {nullptr, std::string(kFailed) + error.what()};
  }
}

Record record_of(std::string_view text) {
  Record record{};
  std::ranges::copy(text.substr(0, record.size() - 1), record.begin());
  return record;
}

std::string exchanged(int rank, int size, const AllGather& all_gather, std::string_view text) {
  const Record mine = record_of(rank == 0 ? text : std::string_view());
  std::vector<Record> all(static_cast<std::size_t>(size));
  all_gather(std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(all)));
  all.front().back() = '\0';
  std::string first = all.front().data();
  if (!std::ranges::all_of(first, [](char c) { return c >= ' ' && c <= '~'; })) {
    throw Error(ErrorCode::kProtocol, 0,
                fmt::format("rank {}: the all-gather of the bootstrap delivered other bytes than "
                            "rank 0's",
                            rank));
  }
  if (first.empty()) {
    throw std::invalid_argument(
        fmt::format("rank {}: the all-gather of the bootstrap did not deliver rank 0's bytes: "
                    "`all` must receive the bytes of all ranks, in the order of ranks",
                    rank));
  }
  return first;
}

}  // namespace

std::shared_ptr<Store> store_by_all_gather(int rank, int size, const AllGather& all_gather,
                                           Deadline deadline) {
  check(size >= 1 && rank >= 0 && rank < size,
        fmt::format("rank {} of {} ranks: expected a rank from 0 to {}", rank, size, size - 1));
  check(all_gather != nullptr, "the bootstrap needs the function all_gather");
  Served served = rank == 0 ? serve(size) : Served{};
  const std::string text = exchanged(rank, size, all_gather, served.text);
  if (text.starts_with(kFailed)) {
    throw Error(ErrorCode::kUnavailable, 0,
                "rank 0: cannot serve the store of the job: " + text.substr(kFailed.size()));
  }
  StorePlaces at = launch::parse_places(text);
  if (rank != 0) return connect_tcp_store(at, deadline, 0);
  const std::uint16_t port = served.server->port();
  auto client = connect_tcp_store({{{"127.0.0.1", port}, {"::1", port}}, at.job}, deadline, 0);
  Store* const store = client.get();
  return {store, [client = std::move(client), server = std::move(served.server)](Store*) mutable {
            client.reset();
            server.reset();
          }};
}

}  // namespace kolo::inline v0
