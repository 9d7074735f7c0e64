// Interface of a measured library that runs collectives: kolo, and each peer.
//
// Every rank has its own instance. Making one is collective over the ranks that share the store.
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

// One collective over `count` elements; communicator.h says what `count` means for each.
struct Problem {
  Collective collective = Collective::kAllReduce;
  ElementType type = ElementType::kFloat32;
  ReduceOp op = ReduceOp::kSum;
  bool is_in_place = true;
  int servers =
      0;  // push, pull: dedicated servers, the first ranks; 0: every rank serves and works
  std::size_t count = 0;

  bool operator==(const Problem&) const = default;
};

// How kolo is called: see call_form.h.
enum class CallForm : std::uint8_t { kBlocking, kAsync, kPersistent, kEventLoop, kCaptured };

// The root of collectives that have one.
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
  // What the transport runs over, if there are several: libfabric's provider, UCX's transports.
  virtual std::string carrier() const { return {}; }
  // The algorithm that runs, even if the library chooses it.
  virtual std::string algorithm(const Problem& problem) const = 0;

  // Why it cannot run this problem, in a few words; empty if it can.
  virtual std::string objection(const Problem& problem) const = 0;

  // Its version, for the JSON lines; empty if unknown.
  virtual std::string version() const { return {}; }

  // The place of the result after run(): `out`, except for libraries with a different meaning of in
  // place.
  virtual const void* result(const Problem&, const void* /*in*/, const void* out) const {
    return out;
  }

  // Whether it runs in worker processes of its own, one per rank, which run whole passes
  // (pass_runner.h) while the ranks sleep. For such libraries run_pass() is called, and never
  // run().
  virtual bool runs_in_workers() const { return false; }

  // The buffers must be shared pages (buffer.h). Throws if a process is lost.
  virtual PassResult run_pass(const PassRequest& turn, const Buffer& data, const Buffer& input);

  // A warning about its rows, printed above the table; empty if there is none.
  virtual std::string caution() const { return {}; }

  // Whether its own threads move its data. Then the ranks are not bound to cores during its passes,
  // as its users' ranks are not.
  virtual bool has_threads() const { return false; }

  // The communicator that counts its steps; null if there is none.
  virtual const Communicator* communicator() const { return nullptr; }

  // Writes its requested files (KOLO_TIMELINE, --trace). Error kSystem.
  virtual void write_records() {}

  // Memory that suits it best for buffers; null if it has none.
  virtual std::shared_ptr<std::byte[]> allocate(std::size_t) { return nullptr; }

  // For libraries on other memory than the runner's (device/library_on_device.h). `place` announces
  // the memory that `in` and `out` will be parts of. `bring` copies inputs to the library's memory
  // before each run(), `fetch` copies results back after it. Neither is timed.
  virtual void place(std::span<std::byte> /*data*/, std::span<std::byte> /*input*/) {}
  virtual void bring(const Problem&) {}
  virtual void fetch(const Problem&) {}
  // The device; empty: host memory.
  virtual std::string device() const { return {}; }
  // Whether run() takes device memory and returns as soon as the work is enqueued on a stream.
  virtual bool enqueues() const { return false; }
  // The median time of run() for enqueueing, since the last call of this; none if it does not
  // enqueue.
  virtual std::optional<double> take_enqueue_us() { return std::nullopt; }

  // Runs the collective once, blocking. In place, `in` and `out` are those of communicator.h for
  // that case. Null for ranks without input or output.
  virtual void run(const Problem& problem, const void* in, void* out) = 0;
};

struct LibraryRequest {
  int rank = 0;
  int size = 1;
  std::shared_ptr<Store> store;
  std::string transport;          // kolo's; peers use what their users use
  std::string algorithm;          // empty: the library's choice
  std::size_t segment_bytes = 0;  // 0: the library's choice
  std::chrono::milliseconds timeout{60'000};
  Reproducibility reproducibility = Reproducibility::kFast;  // kolo's
  CallForm form = CallForm::kBlocking;                       // kolo's
  bool has_progress_thread = false;                          // kolo's
  bool is_profiled = false;                                  // kolo's
  std::shared_ptr<DeviceMemory> device = {};                 // of the buffers; null: host memory
};

std::unique_ptr<Library> make_kolo(const LibraryRequest& request);

// The communicator for kolo; the request's algorithm is ignored.
std::shared_ptr<Communicator> connect_kolo(const LibraryRequest& request);

// One library per algorithm that can run the problem, all over the same channels.
std::vector<std::unique_ptr<Library>> make_kolo_by_all(std::shared_ptr<Communicator> communicator,
                                                       const Problem& problem,
                                                       const LibraryRequest& request = {});

}  // namespace kolo::bench
