// What is measured: a library that can run collectives. kolo is one, each peer is another.
//
// Every rank has an instance of its own; making one is collective over the ranks that share the
// store.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "collectives/communicator.h"
#include "collectives/element.h"
#include "collectives/schedule.h"
#include "transports/rendezvous.h"

namespace kolo::bench {

// One collective over `count` elements. What `count` means for each is as in communicator.h.
struct Problem {
  Collective collective = Collective::kAllReduce;
  ElementType type = ElementType::kFloat32;
  ReduceOp op = ReduceOp::kSum;
  bool is_in_place = true;
  int servers =
      0;  // push, pull: the first so many ranks serve and do not work; 0: every rank does both
  std::size_t count = 0;

  bool operator==(const Problem&) const = default;
};

// How kolo is called: see forms.h.
enum class CallForm : std::uint8_t { kBlocking, kAsync, kPersistent, kCaptured };

// The rank that gives or gets all, where there is one.
inline constexpr int kRoot = 0;

class Buffer;
class DeviceMemory;
struct PassRequest;
struct PassResult;

class Library {
 public:
  Library() = default;
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  virtual ~Library() = default;

  // For the table and the JSON lines.
  virtual std::string name() const = 0;
  virtual std::string transport() const = 0;
  // What that goes over, where there are several such: libfabric's provider, UCX's transports.
  virtual std::string carrier() const { return {}; }
  // The algorithm that runs, also where the library chooses it.
  virtual std::string algorithm(const Problem& problem) const = 0;

  // Why it cannot run this, in a few words; empty where it can.
  virtual std::string objection(const Problem& problem) const = 0;

  // Its release, for the JSON lines; empty where it does not tell.
  virtual std::string version() const { return {}; }

  // Where the result is after run(): `out`, but for a library that has another idea of in place.
  virtual const void* result(const Problem&, const void* /*in*/, const void* out) const {
    return out;
  }

  // Whether it lives in processes of its own, one for each rank, which play whole turns (player.h)
  // by themselves while the ranks sleep: for those libraries run_pass() is called, and never run().
  virtual bool runs_in_workers() const { return false; }

  // The buffers are shared pages (buffer.h). Throws where a process is lost.
  virtual PassResult run_pass(const PassRequest& turn, const Buffer& data, const Buffer& input);

  // What to know before its rows are read, a line above the table; empty where there is nothing.
  virtual std::string caution() const { return {}; }

  // Whether threads of its own move its data. Then the ranks are bound to no core in its turns, as
  // those of its users are.
  virtual bool has_threads() const { return false; }

  // What counts its steps; null where nothing does.
  virtual const Communicator* communicator() const { return nullptr; }

  // Writes the files that were asked for of what it did (KOLO_TIMELINE, --trace). Error kSystem.
  virtual void write_records() {}

  // Memory that suits it best for buffers; null where it has no such.
  virtual std::shared_ptr<std::byte[]> allocate(std::size_t) { return nullptr; }

  // Of memory that is not the player's: see device/on_device.h. What `in` and `out` will be parts
  // of; before and after each run(), untimed: what they hold goes to where the library works, and
  // what it has done comes back.
  virtual void place(std::span<std::byte> /*data*/, std::span<std::byte> /*input*/) {}
  virtual void bring(const Problem&) {}
  virtual void fetch(const Problem&) {}
  // Which device that is; empty: the host's memory.
  virtual std::string device() const { return {}; }
  // Whether run() takes a device's memory, and returns when the work has been given to its stream.
  virtual bool enqueues() const { return false; }
  // The median of what run() took to give it there, since this was last asked; none: it did not.
  virtual std::optional<double> take_enqueue_us() { return std::nullopt; }

  // Runs it once, blocking. In place, `in` and `out` are those of communicator.h for that case.
  // Null for ranks that give or get nothing.
  virtual void run(const Problem& problem, const void* in, void* out) = 0;
};

struct LibraryRequest {
  int rank = 0;
  int size = 1;
  std::shared_ptr<Store> store;
  std::string transport;          // kolo's; peers take what their users take
  std::string algorithm;          // empty: the library's choice
  std::size_t segment_bytes = 0;  // 0: the library's choice
  std::chrono::milliseconds timeout{60'000};
  Reproducibility reproducibility = Reproducibility::kFast;  // kolo's
  CallForm form = CallForm::kBlocking;                       // kolo's
  bool has_progress_thread = false;                          // kolo's
  bool is_profiled = false;                                  // kolo's
  std::shared_ptr<DeviceMemory> device = {};  // where buffers are; null: the host's memory
};

std::unique_ptr<Library> make_kolo(const LibraryRequest& request);

// What kolo runs over; the request's algorithm does not matter.
std::shared_ptr<Communicator> connect_kolo(const LibraryRequest& request);

// One for every algorithm that it could run the problem by, over the same channels.
std::vector<std::unique_ptr<Library>> make_kolo_by_all(std::shared_ptr<Communicator> communicator,
                                                       const Problem& problem,
                                                       const LibraryRequest& request = {});

}  // namespace kolo::bench
