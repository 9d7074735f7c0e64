// Ranks as threads, each with a transport of its own: what the bodies of the suite are written
// with.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "test/support/catch.h"
#include "test/transports/conformance/transport_table.h"
#include "transports/error.h"
#include "transports/registry.h"
#include "transports/waiting.h"

namespace kolo::test {

using Bytes = std::vector<std::byte>;

// The bytes of the `index`-th segment from one rank to another.
Bytes pattern(int from, int to, int index, std::size_t bytes);

// How a segment leaves and arrives.
enum class Out { kSlot, kSend };
enum class In { kView, kReceive, kReceiveCold };

// What the body of a test sees of one rank. Every wait has the deadline; what goes wrong is thrown.
class Rank {
 public:
  Rank(const TransportRow& row, const TransportRequest& request, std::shared_ptr<Store> job);

  int rank() const { return request_.rank; }
  int size() const { return request_.size; }
  Transport& transport() { return *transport_; }
  Store& store() { return *job_; }
  Channel& to(int peer) { return transport_->channel(peer); }
  std::size_t segment_bytes();

  // Closes the transport as its owner's death would.
  void drop_transport() { transport_.reset(); }

  // Makes progress until `is_done()`.
  void until(const std::function<bool()>& is_done, std::string_view what = "something");

  void send(int peer, std::span<const std::byte> data, Out out = Out::kSend,
            unsigned flags = kPlain);
  Bytes receive(int peer, std::size_t bytes, In in = In::kReceive);
  void drain(int peer);

  // The index-th segment of the pattern, sent or received and compared.
  void send_pattern(int peer, int index, std::size_t bytes, Out out = Out::kSend,
                    unsigned flags = kPlain);
  void expect_pattern(int peer, int index, std::size_t bytes, In in = In::kReceive);

  // Nobody goes on before all have come; through the store, so that the channels stay untouched.
  void meet(std::string_view where);

 private:
  TransportRequest request_;
  std::shared_ptr<Store> job_;
  std::unique_ptr<Transport> transport_;
  WaitPolicy policy_;
  std::map<int, std::vector<Bytes>> sent_;  // to each peer, until that channel is drained
};

std::unique_ptr<Transport> make_for(const TransportRow& row, const TransportRequest& request);

// Throws where the two differ, naming the first byte that does.
void expect_equal(std::span<const std::byte> got, std::span<const std::byte> expected,
                  std::string_view what);
void expect(bool holds, std::string_view what);

// The error that the body throws; a failure where it throws none.
Error error_of(const std::function<void()>& body);

// Runs `body` on `size` threads and throws what the first of them threw.
void run_ranks(const TransportRow& row, int size, const std::function<void(Rank&)>& body,
               std::size_t segment_bytes = 0);

// The body once for each transport of the table, each a section with its name.
template <typename Body>
void for_each_transport(Body body) {
  for (const TransportRow& row : kTransports) {
    DYNAMIC_SECTION(row.name) { body(row); }
  }
}

}  // namespace kolo::test
