// Ranks as threads, each with a transport of its own: what the clauses are written with.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "transports/base/waiting.h"
#include "transports/conformance/clauses.h"
#include "transports/conformance/subject.h"
#include "transports/error.h"
#include "transports/registry.h"

namespace kolo::conformance {

using Bytes = std::vector<std::byte>;

// The bytes of the `index`-th segment from one rank to another.
Bytes pattern(int from, int to, int index, std::size_t bytes);

// How a segment leaves and arrives.
enum class Out { kSlot, kSend, kGathered };
enum class In { kView, kViewUnaligned, kReceive, kReceiveCold };

// What a clause sees of one rank. Every wait has the deadline; what goes wrong is thrown.
class Rank {
 public:
  Rank(const Subject& subject, const TransportRequest& request, std::shared_ptr<Store> job);

  int rank() const { return request_.rank; }
  int size() const { return request_.size; }
  const TransportRequest& request() const { return request_; }
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
  // What channels say of it, for a wait in vain.
  std::string under_way();

  TransportRequest request_;
  std::shared_ptr<Store> job_;
  std::map<int, std::vector<Bytes>> sent_;  // to each peer, until that channel is drained
  std::unique_ptr<Transport> transport_;    // which may use that until it is closed
  WaitPolicy policy_;
};

// Throws where the two differ, naming the first byte that does.
void expect_equal(std::span<const std::byte> got, std::span<const std::byte> expected,
                  std::string_view what);
void expect(bool holds, std::string_view what);

// Whether the call is refused as the caller's error.
bool is_refused(const std::function<void()>& call);

// The error that the body throws; a failure where it throws none.
Error error_of(const std::function<void()>& body);

// Runs `body` on `size` threads and throws what the first of them threw.
void run_ranks(const Subject& subject, int size, const std::function<void(Rank&)>& body,
               std::size_t segment_bytes = 0);

}  // namespace kolo::conformance
