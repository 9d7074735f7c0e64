// One rank of a job on devices, in a process of its own: a program for device_processes_test.cpp.
// Ranks as threads would not map each other's memory; processes do.
//
//   device_rank WHAT MEMORY TRANSPORT DEVICES
//
//   collectives   every collective, checked
//   captured      an all-reduce in a graph, launched several times
//   killed        the last rank dies after all have mapped what they need
//
// MEMORY is device, managed, pooled or virtual. Rank r is on device r % DEVICES.
//
// Exit codes: 0 all results were right; 3 the rank reported the death of another, and printed the
// error; 4 a wrong result, or no error after a death.
#include <cuda.h>
#include <cuda_runtime.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "collectives/communicator.h"
#include "collectives/reduce/device/device.h"
#include "collectives/reduce/device/on_device.h"
#include "collectives/schedule.h"
#include "transports/conformance/child_process.h"
#include "transports/posix/library.h"
#include "transports/settings.h"

namespace {

using kolo::Communicator;
using kolo::ReduceOp;
using kolo::device::check;

constexpr int kReplays = 3;
constexpr int kCallsAfterDeath = 100;
constexpr std::chrono::seconds kPatience{60};

struct Wrong : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Memory with the matching free function. Freeing waits for the device.
using Memory = std::unique_ptr<void, std::function<void(void*)>>;

// Driver functions for virtual memory; the runtime has none.
struct VirtualCalls {
  decltype(&cuMemGetAllocationGranularity) granularity = nullptr;
  decltype(&cuMemCreate) create = nullptr;
  decltype(&cuMemRelease) release = nullptr;
  decltype(&cuMemAddressReserve) reserve = nullptr;
  decltype(&cuMemAddressFree) free = nullptr;
  decltype(&cuMemMap) map = nullptr;
  decltype(&cuMemUnmap) unmap = nullptr;
  decltype(&cuMemSetAccess) set_access = nullptr;

  VirtualCalls() {
    const kolo::posix::InstalledLibrary driver("libcuda.so.1");
    if (!driver.why().empty()) throw Wrong(driver.why());
    const bool has_all =
        driver.find("cuMemGetAllocationGranularity", granularity) &&
        driver.find("cuMemCreate", create) && driver.find("cuMemRelease", release) &&
        driver.find("cuMemAddressReserve", reserve) && driver.find("cuMemAddressFree", free) &&
        driver.find("cuMemMap", map) && driver.find("cuMemUnmap", unmap) &&
        driver.find("cuMemSetAccess", set_access);
    if (!has_all) throw Wrong("the driver has no calls for virtual memory");
  }
};

void check_call(CUresult result, const char* what) {
  if (result != CUDA_SUCCESS)
    throw Wrong(std::string(what) + ": the driver's error " + std::to_string(result));
}

// Allocates on the current device.
Memory allocate_virtual(std::size_t bytes) {
  const VirtualCalls calls;
  CUmemAllocationProp wanted = {};
  wanted.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  wanted.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  check(cudaGetDevice(&wanted.location.id), "the current device");
  check(cudaFree(nullptr), "the device's context");
  std::size_t step = 0;
  check_call(calls.granularity(&step, &wanted, CU_MEM_ALLOC_GRANULARITY_MINIMUM),
             "cuMemGetAllocationGranularity");
  const std::size_t whole = (bytes + step - 1) / step * step;
  CUmemGenericAllocationHandle handle = 0;
  CUdeviceptr at = 0;
  check_call(calls.create(&handle, whole, &wanted, 0), "cuMemCreate");
  check_call(calls.reserve(&at, whole, 0, 0, 0), "cuMemAddressReserve");
  check_call(calls.map(at, whole, 0, handle, 0), "cuMemMap");
  CUmemAccessDesc access = {};
  access.location = wanted.location;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  check_call(calls.set_access(at, whole, &access, 1), "cuMemSetAccess");
  check_call(calls.release(handle), "cuMemRelease");  // the mapping stays
  return {reinterpret_cast<void*>(at), [calls, at, whole](void*) {
            cudaDeviceSynchronize();
            calls.unmap(at, whole);
            calls.free(at, whole);
          }};
}

Memory allocate(const std::string& kind, std::size_t bytes, kolo::device::Stream stream) {
  if (kind == "virtual") return allocate_virtual(bytes);
  void* memory = nullptr;
  if (kind == "managed") {
    check(cudaMallocManaged(&memory, bytes), "managed memory");
  } else if (kind == "pooled") {
    check(cudaMallocAsync(&memory, bytes, stream), "memory of a pool");
    return {memory, [stream](void* freed) {
              cudaFreeAsync(freed, stream);
              cudaStreamSynchronize(stream);
            }};
  } else {
    check(cudaMalloc(&memory, bytes), "memory of the device");
  }
  return {memory, [](void* freed) { cudaFree(freed); }};
}

// Small integers, whose sums are exact in every type.
template <typename T>
T value_of(int rank, std::size_t i) {
  return static_cast<T>((i * 7 + static_cast<std::size_t>(rank) * 5) % 11);
}

template <typename T>
class Job {
 public:
  Job(Communicator& communicator, const std::string& kind, std::size_t count)
      : communicator_(communicator),
        kind_(kind),
        count_(count),
        in_(allocate(kind, count * sizeof(T), stream_)),
        out_(allocate(kind, count * sizeof(T), stream_)) {}

  int rank() const { return communicator_.rank(); }
  int size() const { return communicator_.size(); }
  std::size_t count() const { return count_; }
  T* in() const { return static_cast<T*>(in_.get()); }
  T* out() const { return static_cast<T*>(out_.get()); }
  kolo::device::Stream stream() const { return stream_; }
  kolo::CallOptions on_stream() const { return {.stream = kolo::DeviceStream{stream_}}; }

  // Writes this rank's values, from `first` on, to the first `elements` elements of the input.
  void give(std::size_t first, std::size_t elements, int round = 0) {
    std::vector<T> values(elements);
    for (std::size_t i = 0; i < elements; ++i) values[i] = value_of<T>(rank() + round, first + i);
    kolo::device::copy(in(), values.data(), elements * sizeof(T), stream_);
    kolo::device::wait(stream_);
  }

  // Throws Wrong unless element i at `at` is expected(i).
  template <typename Expected>
  void expect(const char* what, const T* at, std::size_t elements, Expected expected) {
    std::vector<T> found(elements);
    kolo::device::copy(found.data(), at, elements * sizeof(T), stream_);
    kolo::device::wait(stream_);
    for (std::size_t i = 0; i < elements; ++i) {
      if (found[i] == expected(i)) continue;
      throw Wrong("rank " + std::to_string(rank()) + ": " + what + " from " + kind_ +
                  " memory: element " + std::to_string(i) + " of " + std::to_string(elements) +
                  " is wrong");
    }
  }

  // The sum over the ranks before `end`.
  T sum(std::size_t i, int end, int round = 0) const {
    T sum = 0;
    for (int rank = 0; rank < end; ++rank) sum = static_cast<T>(sum + value_of<T>(rank + round, i));
    return sum;
  }

 private:
  Communicator& communicator_;
  const std::string kind_;
  const std::size_t count_;
  const kolo::device::OwnStream stream_;
  const Memory in_;
  const Memory out_;
};

template <typename T>
void sum_and_scan(Communicator& communicator, Job<T>& job) {
  const auto type = kolo::kElementTypeOf<T>;
  const auto on = job.on_stream();
  const std::size_t count = job.count();
  const int rank = job.rank();
  const int size = job.size();
  const auto whole = [&](std::size_t i) { return job.sum(i, size); };
  job.give(0, count);
  communicator.all_reduce({job.in(), count, type}, {job.out(), count, type}, ReduceOp::kSum, on);
  job.expect("all_reduce", job.out(), count, whole);
  communicator.reduce({job.in(), count, type}, {job.out(), count, type}, 0, ReduceOp::kSum, on);
  if (rank == 0) job.expect("reduce", job.out(), count, whole);
  communicator.scan({job.in(), count, type}, {job.out(), count, type}, ReduceOp::kSum, on);
  job.expect("scan", job.out(), count, [&](std::size_t i) { return job.sum(i, rank + 1); });
  communicator.exclusive_scan({job.in(), count, type}, {job.out(), count, type}, ReduceOp::kSum,
                              on);
  if (rank > 0)
    job.expect("exclusive_scan", job.out(), count, [&](std::size_t i) { return job.sum(i, rank); });
  communicator.reduce_scatter(
      {job.in(), count, type},
      {job.out(), kolo::chunk_count(count, communicator.size(), communicator.rank()), type},
      ReduceOp::kSum, on);
  const std::size_t begin = kolo::chunk_begin(count, size, rank);
  job.expect("reduce_scatter", job.out(), kolo::chunk_count(count, size, rank),
             [&](std::size_t i) { return job.sum(begin + i, size); });
  communicator.all_reduce({job.in(), count, type}, ReduceOp::kSum, on);
  job.expect("all_reduce in place", job.in(), count, whole);
}

template <typename T>
void move(Communicator& communicator, Job<T>& job) {
  const auto type = kolo::kElementTypeOf<T>;
  const auto on = job.on_stream();
  const std::size_t count = job.count();
  const int rank = job.rank();
  const int size = job.size();
  const std::size_t begin = kolo::chunk_begin(count, size, rank);
  const std::size_t own = kolo::chunk_count(count, size, rank);
  const auto by_owner = [&](std::size_t i) {
    int owner = 0;
    while (kolo::chunk_begin(count, size, owner) + kolo::chunk_count(count, size, owner) <= i)
      ++owner;
    return value_of<T>(owner, i);
  };
  job.give(begin, own);
  communicator.all_gather(
      {job.in(), kolo::chunk_count(count, communicator.size(), communicator.rank()), type},
      {job.out(), count, type}, on);
  job.expect("all_gather", job.out(), count, by_owner);
  communicator.gather(
      {job.in(), kolo::chunk_count(count, communicator.size(), communicator.rank()), type},
      {job.out(), count, type}, 0, on);
  if (rank == 0) job.expect("gather", job.out(), count, by_owner);
  job.give(0, count);
  communicator.scatter(
      {job.in(), count, type},
      {job.out(), kolo::chunk_count(count, communicator.size(), communicator.rank()), type}, 1, on);
  job.expect("scatter", job.out(), own, [&](std::size_t i) { return value_of<T>(1, begin + i); });
  communicator.all_to_all({job.in(), count, type}, {job.out(), count, type}, on);
  const std::size_t each = count / static_cast<std::size_t>(size);
  job.expect("all_to_all", job.out(), count, [&](std::size_t i) {
    return value_of<T>(static_cast<int>(i / each),
                       static_cast<std::size_t>(rank) * each + i % each);
  });
  communicator.broadcast({job.in(), count, type}, 1, on);
  job.expect("broadcast", job.in(), count, [](std::size_t i) { return value_of<T>(1, i); });
}

template <typename T>
void call_all(Communicator& communicator, const std::string& kind) {
  for (const std::size_t each : {std::size_t{1}, std::size_t{1667}, std::size_t{700'001}}) {
    Job<T> job(communicator, kind, each * static_cast<std::size_t>(communicator.size()));
    sum_and_scan(communicator, job);
    move(communicator, job);
  }
}

void replay(Communicator& communicator, const std::string& kind) {
  Job<float> job(communicator, kind, 100'003);
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t ready = nullptr;
  check(cudaStreamBeginCapture(job.stream(), cudaStreamCaptureModeThreadLocal), "capture");
  communicator.all_reduce({job.in(), job.count(), kolo::ElementType::kFloat32},
                          {job.out(), job.count(), kolo::ElementType::kFloat32}, ReduceOp::kSum,
                          job.on_stream());
  check(cudaStreamEndCapture(job.stream(), &graph), "the end of a capture");
  check(cudaGraphInstantiate(&ready, graph, 0), "making a graph ready");
  for (int round = 0; round < kReplays; ++round) {
    job.give(0, job.count(), round);
    check(cudaGraphLaunch(ready, job.stream()), "launching a graph");
    job.expect("a launch", job.out(), job.count(),
               [&](std::size_t i) { return job.sum(i, job.size(), round); });
  }
  check(cudaGraphExecDestroy(ready), "ending a graph");
  check(cudaGraphDestroy(graph), "ending a graph");
}

// Returns the error that this rank gets. The last rank never returns.
std::string outlive(Communicator& communicator, const std::string& kind) {
  Job<float> job(communicator, kind, 3'000'001);
  const auto sum = [&] {
    communicator
        .all_reduce_async({job.in(), job.count(), kolo::ElementType::kFloat32},
                          {job.out(), job.count(), kolo::ElementType::kFloat32}, ReduceOp::kSum,
                          job.on_stream())
        .wait();
  };
  job.give(0, job.count());
  sum();
  communicator.barrier();
  if (job.rank() == job.size() - 1) std::raise(SIGKILL);
  try {
    for (int call = 0; call < kCallsAfterDeath; ++call) sum();
  } catch (const std::exception& error) {
    return error.what();
  }
  throw Wrong("no call reported the killed rank");
}

int run(const std::string& what, const std::string& kind, const std::string& transport,
        int devices) {
  const int number = kolo::read_settings().rank.value_or(0) % devices;
  kolo::device::use(number);
  kolo::CommunicatorOptions options;
  options.timeout = kPatience;
  options.transport = transport;
  options.device = kolo::device::on_device(number);
  Communicator communicator = Communicator::from_environment(options);
  if (what == "killed") {
    std::printf("%s\n", outlive(communicator, kind).c_str());
    return 3;
  }
  if (what == "captured") {
    replay(communicator, kind);
  } else {
    call_all<float>(communicator, kind);
    call_all<std::int32_t>(communicator, kind);
    call_all<double>(communicator, kind);
  }
  communicator.barrier();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5 || std::atoi(argv[4]) < 1) return 2;
  kolo::conformance::end_with_parent();
  try {
    return run(argv[1], argv[2], argv[3], std::atoi(argv[4]));
  } catch (const std::exception& error) {
    std::printf("%s\n", error.what());
    return 4;
  }
}
