// What a program may ask for: of a communicator as it is made, and of a call.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kolo {

// Which bits a reduction of floats may have. In every mode all ranks get the same.
enum class Reproducibility : std::uint8_t {
  kFast,       // those of the algorithm that is the fastest here: another run may choose another
  kOrdered,    // the same in every run with the same ranks, counts and transport: what is chosen
               // does not depend on what was measured at the start
  kInvariant,  // those of ((x0 op x1) op x2) ..., for any algorithm that does it, any segment,
               // transport and number of buckets; the others are refused where the order matters,
               // which it does not for two ranks
};

std::string_view to_string(Reproducibility mode);

struct RankDevice;

// How a communicator is made. Groups that are made from it (split, duplicate, subset) take all of
// it over but the name.
struct CommunicatorOptions {
  std::string transport = "auto";  // a name of transport_names(), or "auto"
  std::string name = "world";      // keeps communicators of one job apart in the store
  // Of every operation, and of finding the others; 0: KOLO_TIMEOUT_MS, if set, or else 30 s. Ranks
  // may differ: the shortest ends it for all.
  std::chrono::milliseconds timeout{0};
  std::size_t segment_bytes = 0;  // the same on every rank; 0: as suits the transport
  std::string host_id = {};       // as which host of its machine it counts; empty: KOLO_HOST_ID
  bool progress_thread = false;   // a thread that drives asynchronous operations while nobody waits
  Reproducibility reproducibility = Reproducibility::kFast;  // the same on every rank
  // A table of measured choices (kolo-bench tune writes it): a file, read by rank 0 alone; empty:
  // KOLO_TUNING, if set.
  std::string tuning = {};
  bool profile = false;  // sums for Communicator::step_profile()
  // A file for the steps of every operation on a timeline: FILE.json becomes
  // FILE.RANK.json when the communicator ends; empty: KOLO_TIMELINE, if set. Profiles as well.
  std::string timeline = {};
  // The device whose streams this rank's calls may name (rank_device.h); null: none. Ranks may
  // differ, and those with a device and those without meet in one communicator.
  std::shared_ptr<const RankDevice> device = {};
};

// Where the servers of push_pull, push and pull are. Ranks that are not servers are workers; with
// `everywhere`, each is both.
struct ServerPlan {
  bool everywhere = false;
  std::vector<int>
      servers;  // ranks that serve and do not work; server i holds chunk i of every push
};

// Called by a server for every complete piece of its chunk, as soon as it is complete: `first` is
// the index of the first element in the whole operation, `sums` the reduction, to be replaced by
// what the workers shall pull. Empty: the reduction itself is what they pull. Called inside
// progress, on the thread that makes it.
using ServerUpdate = std::function<void(std::size_t first, std::span<std::byte> sums)>;

// A stream of the rank's device, as its runtime has it (cudaStream_t, CUstream); null: the default
// stream.
struct DeviceStream {
  void* handle = nullptr;
};

// Per call; the defaults are right. Algorithm and segments are the same on every rank, or all hear
// of the mismatch; the rest may differ.
struct CallOptions {
  // A name of algorithm_names(collective); empty: what the planner chooses.
  std::string_view algorithm = {};
  std::size_t segment_bytes = 0;
  // The ..._async form plans the operation and does not issue it: Work::start() does, as often as
  // one likes, with the same buffers.
  bool is_persistent = false;
  // From the issue to the end of the operation; 0: the communicator's. Ranks may differ: the
  // shortest ends it for all. What passes while this rank does something else, or is stopped, and
  // nobody makes progress, does not count against its peers: who then waits gives them the whole
  // time anew.
  std::chrono::milliseconds timeout{0};
  // Of kScaledSum, and of nothing else: what this rank's elements are multiplied by before they are
  // summed, which may differ from rank to rank (as in NCCL's ncclRedOpCreatePreMulSum). Finite in
  // float32, for float64 in float64.
  double scale = 1;
  // Enqueues the operation there, whose buffers are then memory of the rank's device.
  // std::invalid_argument, before anything is sent, for host memory with a stream, device memory
  // without, or a rank without a device. The stream must live until the operation is given to it
  // whole, and a persistent one's as long as it is started.
  std::optional<DeviceStream> stream = {};
};

}  // namespace kolo
