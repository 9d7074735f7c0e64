// Pipe: a way to send messages between two ranks.
//
//   segments   the transport's channel (transports/transport.h) by its plain calls: send from, and
//              receive into, the caller's memory. A message is split into segments.
//   messages   Communicator::send and receive: with headers, a queue and checks.
//   library    bare UCX beside the transport ucx; otherwise bare libfabric, with the provider of
//   the
//              transport ofi.
//
// messages minus segments is the cost of kolo's upper layers. segments minus library is the cost of
// the transport's contract. A peer's pipe (peers/peers.h) sends the peer's own messages. In device
// memory only messages exist, of kolo and of peers.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "transports/rendezvous.h"

namespace kolo::bench {

// `count` messages of one length, at least 1 byte, one after the other in memory.
struct Messages {
  std::byte* first = nullptr;
  std::size_t bytes = 0;
  std::size_t count = 0;
};

class DeviceMemory;
struct P2pPassRequest;
struct P2pPassResult;

class Pipe {
 public:
  Pipe() = default;
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  virtual ~Pipe() = default;

  virtual std::string library() const { return "kolo"; }
  virtual std::string level() const = 0;
  virtual std::string transport() const = 0;
  // What the transport runs over, as in library.h.
  virtual std::string carrier() const { return {}; }
  // The library's version, for the JSON lines; empty if unknown.
  virtual std::string version() const { return {}; }

  // Why it cannot run, in a few words, the same on both ranks; empty if it can.
  virtual std::string objection() const { return {}; }

  // Whether it runs in worker processes of its own, one per rank, which run whole passes (pass.h)
  // while the ranks sleep. For such pipes run_pass() is called, and never exchange().
  virtual bool runs_in_workers() const { return false; }
  // Throws if a process is lost.
  virtual P2pPassResult run_pass(const P2pPassRequest& turn);

  // Sends `out` to the peer and receives `in` from it, both at once, each in order; either may be
  // empty. Returns when all is done and no memory is in use. Errors as for a channel; kDeadline
  // after the timeout.
  virtual void exchange(const Messages& out, const Messages& in) = 0;

  // For pipes on other memory than the pass's (device/pipe_on_device.h). `place` announces the
  // memory of the messages. `bring` copies it to the pipe's memory before each sample, `fetch`
  // copies it back after. Neither is timed.
  virtual void place(std::span<const std::span<std::byte>>) {}
  virtual void bring() {}
  virtual void fetch() {}
  // The device; empty: host memory.
  virtual std::string device() const { return {}; }
  // Whether exchange() takes device memory and returns as soon as the work is enqueued on a stream.
  virtual bool enqueues() const { return false; }
  // Ends a sample: returns when all exchanges are done.
  virtual void finish() {}
  // The median time to enqueue a sample, since the last call of this; none if it does not enqueue.
  virtual std::optional<double> take_enqueue_us() { return std::nullopt; }

  // Whether it progresses only inside its calls, so that its last send may leave at the next call.
  // Then a rank that waits for anything else calls get_on() repeatedly.
  virtual bool needs_calls() const { return false; }
  virtual void get_on() {}

  // Writes its requested files (KOLO_TIMELINE, --trace). Error kSystem.
  virtual void write_records() {}
};

struct PipeRequest {
  int rank = 0;  // 0 or 1
  std::shared_ptr<Store> store;
  std::string transport;
  std::size_t segment_bytes = 0;  // 0: the transport's preference
  std::chrono::milliseconds timeout{60'000};
  // Libfabric's provider; empty: the one with the transport's name, or else the one of the
  // transport ofi.
  std::string library_provider = {};
  std::shared_ptr<DeviceMemory> device = {};  // of the messages; null: host memory
};

// Returns when both ranks have come here; `pipe` progresses meanwhile. A key can be used once.
// Error kDeadline.
void meet_by(Pipe& pipe, Store& store, int rank, const std::string& key, Deadline deadline);

// Collective over ranks 0 and 1.
std::unique_ptr<Pipe> make_segment_pipe(const PipeRequest& request);
std::unique_ptr<Pipe> make_message_pipe(const PipeRequest& request);
std::unique_ptr<Pipe> make_ucx_pipe(const PipeRequest& request);
std::unique_ptr<Pipe> make_libfabric_pipe(const PipeRequest& request);

// The bare library that is compared with request.transport: UCX for ucx, libfabric for all others.
std::unique_ptr<Pipe> make_library_pipe(const PipeRequest& request);

// The usable providers of libfabric that kolo knows.
std::vector<std::string> bare_libfabric_providers();

}  // namespace kolo::bench
