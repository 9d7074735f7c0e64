// Options of a communicator, and of a single call.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <memory_resource>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "../transports/log.h"

namespace kolo::inline v0 {

// Which bits a reduction of floats may have. In every mode all ranks get the same bits.
enum class Reproducibility : std::uint8_t {
  kFast,       // of the fastest algorithm here; another run may choose a different algorithm
  kOrdered,    // the same in every run with the same ranks, counts and transport: the choice of the
               // algorithm does not depend on measurements at the start
  kInvariant,  // those of ((x0 op x1) op x2) ..., with any algorithm that combines in this order,
               // any segment length, transport and number of buckets. Other algorithms are refused
               // if the order matters; with two ranks it does not
};

std::string_view to_string(Reproducibility mode);

struct RankDevice;

// Options of a new communicator. Groups made from it (split, duplicate, subset) inherit all of them
// except the name.
struct CommunicatorOptions {
  std::string transport = "auto";  // a name of transport_names(), or "auto"
  std::string name = "world";      // separates the communicators of a job in the store
  // Timeout of each operation and of the setup of the communicator. 0: KOLO_TIMEOUT_MS, or 30 s if
  // that is not set. Ranks may differ: the shortest timeout ends the operation for all.
  std::chrono::milliseconds timeout{0};
  std::size_t segment_bytes = 0;  // the same on every rank; 0: the transport's choice
  std::string host_id = {};       // simulates several hosts on one machine; empty: KOLO_HOST_ID
  bool progress_thread = false;   // start a thread that drives asynchronous operations
  Reproducibility reproducibility = Reproducibility::kFast;  // the same on every rank
  // File with a table of measured choices (kolo-bench tune writes it); only rank 0 reads it. Empty:
  // KOLO_TUNING, if set.
  std::string tuning = {};
  bool profile = false;  // collect the sums of Communicator::step_profile()
  // Timeline file of the steps of every operation. FILE.json becomes FILE.RANK.json, written when
  // the communicator ends. Empty: KOLO_TIMELINE, if set. A timeline also turns on `profile`.
  std::string timeline = {};
  // The device whose streams this rank's calls may name (rank_device.h); null: none. Ranks with a
  // device and ranks without may share a communicator.
  std::shared_ptr<const RankDevice> device = {};
  Log log = {};  // errors that no call returns (../transports/log.h); empty: standard error
  // Where the memory for partial results comes from: segments that an operation reduces outside of
  // the caller's buffers. They are kept for the next operation. Null: the default of std::pmr. The
  // thread that makes progress calls it, with an alignment of 64. If it throws, the operation fails
  // as one without memory. Buffers of transports, which other processes map, do not come from it.
  std::shared_ptr<std::pmr::memory_resource> memory = {};
};

// The servers of push_pull, push and pull. All other ranks are workers. With `everywhere`, they are
// servers too: every rank if `servers` is empty. The same on every rank.
//
// The data is cut into equal parts (chunk_begin() in schedule.h). Each server holds consecutive
// parts, in the order of `servers`, then of the other ranks.
struct ServerPlan {
  bool everywhere = false;
  std::vector<int> servers;     // dedicated server ranks, which do not work
  std::vector<int> parts = {};  // how many parts each server holds, at least 1; empty: one each

  friend bool operator==(const ServerPlan&, const ServerPlan&) = default;
};

// The elements that one server holds of an operation.
struct ServerShare {
  std::size_t begin = 0;
  std::size_t count = 0;
};

// The share of `rank` of `count` elements; no elements if it does not serve.
// std::invalid_argument: `parts` does not have one positive number for each server.
ServerShare share_of(const ServerPlan& plan, int rank, int size, std::size_t count);

// Plan in which all `size` ranks send and receive the same: dedicated `servers`, and a smaller
// server in each of the n = size - servers.size() workers. With k dedicated servers a rank sends
// 2n(n - 1) / (n^2 + kn - 2k) of the data. From k = n on the dedicated servers alone serve. Source:
// Jiang et al., OSDI 2020 (BytePS). std::invalid_argument: no worker.
ServerPlan balanced_plan(std::vector<int> servers, int size);

// Update function of a server. Called once for each piece of the server's chunk, as soon as the
// piece is complete. `first` is the index of its first element in the whole operation. `sums` holds
// the reduction; the function replaces it by the values that the workers pull. Without a function
// the workers pull the reduction itself. Runs inside progress, on the thread that makes progress.
using ServerUpdate = std::function<void(std::size_t first, std::span<std::byte> sums)>;

// A stream of the rank's device, as the CUDA handle (cudaStream_t, CUstream); null: the default
// stream.
struct DeviceStream {
  void* handle = nullptr;
};

// Options of one call; the defaults suit most calls. Algorithm and segment length must be the same
// on every rank, or all ranks get a mismatch error. The other options may differ.
struct CallOptions {
  // A name of algorithm_names(collective); empty: the planner's choice.
  std::string_view algorithm = {};
  std::size_t segment_bytes = 0;
  // The ..._async form then only plans the operation. Work::start() issues it, any number of times,
  // with the same buffers.
  bool is_persistent = false;
  // Time from the issue of the operation to its end; 0: the communicator's timeout. Ranks may
  // differ: the shortest timeout ends the operation for all. Time in which this rank makes no
  // progress (it computes, or is stopped) does not count against its peers: when it waits again,
  // the whole timeout starts anew.
  std::chrono::milliseconds timeout{0};
  // kScaledSum only: the factor by which this rank's elements are multiplied before they are summed
  // (as NCCL's ncclRedOpCreatePreMulSum). Ranks may differ. Must be finite in float32; for float64
  // elements, in float64.
  double scale = 1;
  // Enqueues the operation on this stream; its buffers are then memory of the rank's device.
  // std::invalid_argument, before anything is sent: host memory with a stream, device memory
  // without a stream, or a rank without a device. The stream must live until the whole operation is
  // enqueued; for a persistent operation, as long as it may be started.
  std::optional<DeviceStream> stream = {};
};

}  // namespace kolo::inline v0
