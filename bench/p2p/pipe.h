// What carries messages between two ranks: the transport's channel, or the communicator over it.
//
//   segments   the contract of transports/transport.h, by its plain calls: send from, and receive
//              into, the caller's memory. A message is as many segments as its length asks for.
//   messages   Communicator::send and receive: with headers, a queue, and checks.
//   library    bare UCX beside the transport ucx; else bare libfabric, over the provider that the
//              transport ofi takes.
//
// What the second costs over the first is what kolo's own layers cost; what the first costs over
// the third, the contract. A peer's pipe (peers/peers.h) is its own messages. On the memory of a
// device there are messages alone, kolo's and the peers'.
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

// `count` messages of one length, at least 1 byte, in a row.
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
  // What that goes over, as in library.h.
  virtual std::string carrier() const { return {}; }
  // The library's release, for the JSON lines; empty where it does not tell.
  virtual std::string version() const { return {}; }

  // Why it cannot take part, in a few words, the same on both ranks; empty where it can.
  virtual std::string objection() const { return {}; }

  // Whether it lives in processes of its own, one for each rank, which play whole turns (game.h) by
  // themselves while the ranks sleep: for those run_pass() is called, and never exchange().
  virtual bool runs_in_workers() const { return false; }
  // Throws where a process is lost.
  virtual P2pPassResult run_pass(const P2pPassRequest& turn);

  // Sends `out` to the peer and receives `in` from it, both at once, each in order; one of them may
  // be none. Returns when all has been done and no memory is in use. Errors as of a channel;
  // kDeadline where it takes longer than the timeout.
  virtual void exchange(const Messages& out, const Messages& in) = 0;

  // Of memory that is not the game's: see device/pipe_on_device.h. What messages will lie in;
  // before and after each sample, untimed: what that holds goes to where the pipe works, and what
  // has come there is fetched.
  virtual void place(std::span<const std::span<std::byte>>) {}
  virtual void bring() {}
  virtual void fetch() {}
  // Which device that is; empty: the host's memory.
  virtual std::string device() const { return {}; }
  // Whether exchange() takes a device's memory, and returns when the work has been given to its
  // stream.
  virtual bool enqueues() const { return false; }
  // Ends a sample: all that exchange() was given has been done.
  virtual void finish() {}
  // The median of what it took to give a sample's work there, since this was last asked; none: it
  // did not.
  virtual std::optional<double> take_enqueue_us() { return std::nullopt; }

  // Where it gets on only inside its calls, what it has sent last may leave at the next: then who
  // waits for anything else calls get_on() again and again.
  virtual bool needs_calls() const { return false; }
  virtual void get_on() {}

  // Writes the files that were asked for of what it did (KOLO_TIMELINE, --trace). Error kSystem.
  virtual void write_records() {}
};

struct PipeRequest {
  int rank = 0;  // 0 or 1
  std::shared_ptr<Store> store;
  std::string transport;
  std::size_t segment_bytes = 0;  // 0: the transport's preference
  std::chrono::milliseconds timeout{60'000};
  // Of libfabric's; empty: that of the transport's name, or else the one that ofi takes.
  std::string library_provider = {};
  std::shared_ptr<DeviceMemory> device = {};  // whose messages; null: of the host's memory
};

// Returns when the other of ranks 0 and 1 has come here as well; `pipe` gets on meanwhile. A key is
// used once. Error kDeadline.
void meet_by(Pipe& pipe, Store& store, int rank, const std::string& key, Deadline deadline);

// Collective over ranks 0 and 1.
std::unique_ptr<Pipe> make_segment_pipe(const PipeRequest& request);
std::unique_ptr<Pipe> make_message_pipe(const PipeRequest& request);
std::unique_ptr<Pipe> make_ucx_pipe(const PipeRequest& request);
std::unique_ptr<Pipe> make_libfabric_pipe(const PipeRequest& request);

// The library with nothing around it that request.transport is held against: the second for ucx,
// the third for all others.
std::unique_ptr<Pipe> make_library_pipe(const PipeRequest& request);

// Providers of libfabric's that serve here, as far as kolo knows them.
std::vector<std::string> bare_libfabric_providers();

}  // namespace kolo::bench
