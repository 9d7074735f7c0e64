// Key server: a parameter server that serves the messages of each worker in the order of their
// arrival, and a client for its workers. The collective push_pull instead needs all ranks in every
// call.
//
// Words. The *arena* is a flat array of float32 parameters, the same on every rank. A *key* is a
// range of the arena that one server holds. A worker *pushes* a gradient of a key, and *pulls* its
// values. The server updates its values by gradients, and answers a pull as soon as the rule
// (Consistency) permits it. *Iterations* count the pushes of a worker. Over one key they increase;
// a worker takes no part in an iteration that it leaves out.
//
//   server                                             worker
//   serve_keys(communicator, plan, values, update);    KeyClient client(communicator, plan);
//                                                      client.push_pull(key, iteration, ...);
//                                                      client.wait(key);
//   (returns when all workers have finished)           client.finish();
//
// Order. Keys are numbered by priority: the first is needed first. Of several keys that wait to be
// sent to the same rank, the lowest number goes first.
//
// Gradients travel in fragments of 512 KiB. A server adds fragments as they arrive, as far as the
// order of the ranks allows: sums are ((g0 + g1) + g2) ... in the order of the workers' ranks, with
// the same bits in every run. A gradient that arrives before its turn is kept. So a server needs
// memory for its values, and for the gradients that wait for slower workers.
//
// These are messages of the communicator: while keys are served, no rank may issue other operations
// on it (use duplicate() for those). A rank is a server or a worker, not both.
//
// Failures, as everywhere in kolo: kolo::Error with the same first cause on every rank. A lost rank
// ends the job with its name. kMismatch: a worker has another plan, or its iterations go backwards.
// kDeadline: no worker has sent anything for the timeout, and it names the workers that the server
// waited for. A worker that stalls longer is no failure while others go on. A worker whose server
// is silent for the timeout reports that server.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "communicator.h"

namespace kolo::inline v0 {

struct Key {
  std::size_t first = 0;  // elements of the arena
  std::size_t count = 0;  // at least 1
  int server = 0;         // rank
};

// A range of the arena that is exchanged together, such as a bucket or a layer: one share per
// server, one after another from element `first` on. Shares may be empty.
struct KeyRange {
  std::size_t first = 0;
  std::vector<std::size_t> shares;
};

// Which server holds which part of the arena; the same on every rank. All ranks that are no servers
// are workers.
struct KeyPlan {
  std::size_t elements = 0;             // length of the arena
  std::vector<int> servers;             // ranks
  std::vector<Key> keys;                // in order of priority
  std::vector<std::size_t> first_keys;  // of each range, and keys.size() at the end
};

inline constexpr std::size_t kLongestKey = 1'000'000;  // elements: 4 MB

// Cuts each share into keys of nearly equal length, at most `longest`. `ranges` are in order of
// priority: list the range that the next iteration uses first at the front. They must not overlap.
// std::invalid_argument: ranges overlap, a range has not one share per server, a server is named
// twice, or `longest` is 0.
KeyPlan plan_keys(std::span<const KeyRange> ranges, std::span<const int> servers,
                  std::size_t longest = kLongestKey);

// Rule for when gradients are applied and pulls are answered. It holds for each key by itself.
struct Consistency {
  enum class Kind : std::uint8_t {
    kSynchronous,   // all workers' gradients of an iteration are summed, applied once, and answered
    kAsynchronous,  // each gradient is applied when it has arrived, and answered at once
    kBounded,  // the same, but a worker is at most `bound` iterations ahead of the slowest: its
               // answers wait for that worker. Bound 0 is kSynchronous, with the same bits
    kBackup,   // an iteration ends with the first (workers - bound) gradients. Later ones are
               // dropped. Bound 0 is kSynchronous, with the same bits
  };
  Kind kind = Kind::kSynchronous;
  int bound = 0;
};

// One update of a key. `gradient` is the sum of `gradients` workers' gradients over `samples`
// samples, so gradient / samples is the mean, also if gradients were dropped.
struct KeyUpdate {
  std::size_t key = 0;
  std::int64_t iteration = 0;
  std::span<float> values;    // of the key, in the server's arena; to be updated in place
  std::span<float> gradient;  // may be overwritten
  double samples = 0;         // more than 0
  int gradients = 0;
  int worker = kNoPeer;  // rank of the worker; kNoPeer: a sum of several
};

// Runs on the thread that called serve_keys(). An exception ends the job, with its text on all
// ranks. Not called if an update has no samples: the values then stay.
using KeyUpdateFunction = std::function<void(const KeyUpdate&)>;

struct KeyServerOptions {
  Consistency consistency;
  std::int64_t first_iteration = 0;      // the number of each worker's first iteration
  std::chrono::milliseconds timeout{0};  // 0: the communicator's
};

inline constexpr std::uint64_t kLongestLag = 1000;

struct KeyServerStatistics {
  std::uint64_t gradients = 0;  // that were applied
  std::uint64_t dropped = 0;    // gradients that came after the end of their iteration
  std::uint64_t updates = 0;
  std::uint64_t answers = 0;
  // Gradients by staleness: [s] were applied after s updates that their worker had not pulled. Both
  // histograms are as long as their largest value; [kLongestLag] also counts larger ones.
  std::vector<std::uint64_t> staleness;
  // Gradients by lead: [a] were pushed in an iteration a ahead of the slowest worker's.
  std::vector<std::uint64_t> lead;
  double idle_seconds = 0;  // waiting for messages
};

// Serves this server's keys until all workers have called KeyClient::finish(). `values` is the
// whole arena; only this server's keys are read and written. May be called again, for the next
// epoch. std::invalid_argument, before anything is sent: this rank is no server, `values` has
// another length than the arena, or an impossible rule.
KeyServerStatistics serve_keys(Communicator& communicator, const KeyPlan& plan,
                               std::span<float> values, const KeyUpdateFunction& update,
                               const KeyServerOptions& options = {});

struct KeyClientStatistics {
  std::uint64_t pushes = 0;
  std::uint64_t answers = 0;
  double waiting_seconds = 0;  // in wait(), wait_all() and finish()
};

// Client of one worker. A key has one request in flight at a time; requests of different keys are
// in flight together. Messages move inside calls of this client or of the communicator; with a
// progress thread also between them, up to two gradients and one answer per server.
//
// Gradients and values are borrowed until wait() or test() has told that the key is done. They may
// be the same memory. std::invalid_argument: no such key, another length than the key's, or a key
// that is in flight. Not thread-safe. The communicator must outlive the client. Destroying a client
// with requests in flight aborts the job.
class KeyClient {
 public:
  // `timeout`: longest silence of a server that this worker waits for; 0: the communicator's.
  KeyClient(Communicator& communicator, KeyPlan plan,
            std::chrono::milliseconds timeout = std::chrono::milliseconds{0});
  ~KeyClient();
  KeyClient(const KeyClient&) = delete;
  KeyClient& operator=(const KeyClient&) = delete;

  // `gradient` is the sum over `samples` samples (finite, at least 0). No answer: the key is done
  // once the gradient may be written again.
  void push(std::size_t key, std::int64_t iteration, std::span<const float> gradient,
            double samples);
  // The key is done once `values` holds the server's values, which the rule permits for the
  // worker's last push of the key. At once if there was none.
  void pull(std::size_t key, std::span<float> values);
  void push_pull(std::size_t key, std::int64_t iteration, std::span<const float> gradient,
                 double samples, std::span<float> values);

  // True if the key has no request in flight. Makes progress without blocking.
  bool test(std::size_t key);
  void wait(std::size_t key);
  void wait_all();
  void progress();

  // The iteration that this worker should push next: the one after its last push, or a later one
  // if servers with backup workers have ended iterations without it.
  std::int64_t next_iteration() const;

  // Waits for all requests, then tells all servers that this worker has finished. Until the servers
  // are called again, no more requests may follow.
  void finish();

  KeyClientStatistics statistics() const;

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace kolo::inline v0
