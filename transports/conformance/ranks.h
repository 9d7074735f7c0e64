// Ranks as threads, each with its own transport: the tools that clauses are written with.
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

namespace kolo::inline v0::conformance {

using Bytes = std::vector<std::byte>;

// Content of segment number `index` from one rank to another.
Bytes pattern(int from, int to, int index, std::size_t bytes);

// Ways to send and to receive a segment.
enum class Out { kSlot, kSend, kGathered };
enum class In { kView, kViewUnaligned, kReceive, kReceiveCold };

// One rank, as a clause uses it. Every wait has the job's deadline; failures are thrown.
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

  // Closes the transport, as at the end of its rank.
  void drop_transport() { transport_.reset(); }

  // Makes progress until `is_done()`.
  void until(const std::function<bool()>& is_done, std::string_view what = "something");

  void send(int peer, std::span<const std::byte> data, Out out = Out::kSend,
            unsigned flags = kPlain);
  Bytes receive(int peer, std::size_t bytes, In in = In::kReceive);
  void drain(int peer);

  // Sends or receives segment number `index` of the pattern; a received one is compared.
  void send_pattern(int peer, int index, std::size_t bytes, Out out = Out::kSend,
                    unsigned flags = kPlain);
  void expect_pattern(int peer, int index, std::size_t bytes, In in = In::kReceive);

  // Barrier of all ranks. Uses the store, so that the channels stay untouched.
  void meet(std::string_view where);

 private:
  // State of the channels, for a wait that failed.
  std::string under_way();

  TransportRequest request_;
  std::shared_ptr<Store> job_;
  std::map<int, std::vector<Bytes>> sent_;  // by peer, until that channel is drained
  std::unique_ptr<Transport> transport_;    // after sent_, which it may use until it is closed
  WaitPolicy policy_;
};

// Throws if the two differ, with the position of the first difference.
void expect_equal(std::span<const std::byte> got, std::span<const std::byte> expected,
                  std::string_view what);
void expect(bool holds, std::string_view what);

// True if the call throws std::invalid_argument.
bool is_refused(const std::function<void()>& call);

// Returns the error that `body` throws. Fails if it throws none.
Error error_of(const std::function<void()>& body);

// Runs `body` on `size` threads. Throws the first error of any thread.
void run_ranks(const Subject& subject, int size, const std::function<void(Rank&)>& body,
               std::size_t segment_bytes = 0);

}  // namespace kolo::inline v0::conformance
