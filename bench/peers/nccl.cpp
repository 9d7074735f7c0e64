// NCCL on device memory (--device cuda), with one GPU per rank, as NCCL requires.
//
// libnccl.so.2 is opened on demand: it is large, and runs without it should not wait for it. The
// functions are declared here by NCCL's binary interface of version 2, so no NCCL header is needed
// to build.
#include <dlfcn.h>
#include <fmt/format.h>

#include <array>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "bench/device/memory.h"
#include "bench/measure/library.h"
#include "bench/p2p/pipe.h"
#include "transports/error.h"

namespace kolo::bench {

std::unique_ptr<Library> make_nccl(const LibraryRequest& request);
std::unique_ptr<Pipe> make_nccl_pipe(const LibraryRequest& request);
std::vector<std::string_view> algorithms_of_nccl(Collective collective);

namespace {

using Comm = void*;
struct UniqueId {
  std::array<char, 128> bytes;
};

// Values of ncclDataType_t and ncclRedOp_t; -1: NCCL has none.
int type_number(ElementType type) {
  switch (type) {
    case ElementType::kInt8:
      return 0;
    case ElementType::kUint8:
      return 1;
    case ElementType::kInt32:
      return 2;
    case ElementType::kUint32:
      return 3;
    case ElementType::kInt64:
      return 4;
    case ElementType::kUint64:
      return 5;
    case ElementType::kFloat16:
      return 6;
    case ElementType::kFloat32:
      return 7;
    case ElementType::kFloat64:
      return 8;
    case ElementType::kBFloat16:
      return 9;
    case ElementType::kFloat8E4M3:
      return 10;
    case ElementType::kFloat8E5M2:
      return 11;
    default:
      return -1;
  }
}

int operation_number(ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum:
      return 0;
    case ReduceOp::kProduct:
      return 1;
    case ReduceOp::kMax:
      return 2;
    case ReduceOp::kMin:
      return 3;
    case ReduceOp::kAverage:
      return 4;
    default:
      return -1;
  }
}

class Nccl {
 public:
  Nccl() {
    for (const char* name : {"libnccl.so.2", KOLO_NCCL_LIBRARY}) {
      if (handle_ == nullptr && *name != '\0') handle_ = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    }
    if (handle_ == nullptr) {
      why_absent_ =
          "libnccl.so.2 was not found: install NCCL, or name its folder in "
          "LD_LIBRARY_PATH";
      return;
    }
    find(get_version, "ncclGetVersion");
    find(get_unique_id, "ncclGetUniqueId");
    find(init_rank, "ncclCommInitRank");
    find(destroy, "ncclCommDestroy");
    find(error_string, "ncclGetErrorString");
    find(group_start, "ncclGroupStart");
    find(group_end, "ncclGroupEnd");
    find(all_reduce, "ncclAllReduce");
    find(reduce_scatter, "ncclReduceScatter");
    find(all_gather, "ncclAllGather");
    find(broadcast, "ncclBroadcast");
    find(reduce, "ncclReduce");
    find(send, "ncclSend");
    find(receive, "ncclRecv");
  }

  const std::string& why_absent() const { return why_absent_; }

  void check(int code, const char* call) const {
    if (code == 0) return;
    throw Error(ErrorCode::kSystem, kNoPeer,
                fmt::format("{}: {}; NCCL_DEBUG=WARN tells more, and NCCL refuses ranks that share "
                            "a GPU",
                            call, error_string(code)));
  }

  int (*get_version)(int*) = nullptr;
  int (*get_unique_id)(UniqueId*) = nullptr;
  int (*init_rank)(Comm*, int, UniqueId, int) = nullptr;
  int (*destroy)(Comm) = nullptr;
  const char* (*error_string)(int) = nullptr;
  int (*group_start)() = nullptr;
  int (*group_end)() = nullptr;
  int (*all_reduce)(const void*, void*, std::size_t, int, int, Comm, void*) = nullptr;
  int (*reduce_scatter)(const void*, void*, std::size_t, int, int, Comm, void*) = nullptr;
  int (*all_gather)(const void*, void*, std::size_t, int, Comm, void*) = nullptr;
  int (*broadcast)(const void*, void*, std::size_t, int, int, Comm, void*) = nullptr;
  int (*reduce)(const void*, void*, std::size_t, int, int, int, Comm, void*) = nullptr;
  int (*send)(const void*, std::size_t, int, int, Comm, void*) = nullptr;
  int (*receive)(void*, std::size_t, int, int, Comm, void*) = nullptr;

 private:
  template <typename Function>
  void find(Function& function, const char* name) {
    function = reinterpret_cast<Function>(dlsym(handle_, name));
    if (function == nullptr)
      why_absent_ = fmt::format("libnccl.so.2 has no {}: it is too old", name);
  }

  void* handle_ = nullptr;  // never closed, as NCCL has threads
  std::string why_absent_;
};

// A rank's NCCL communicator, on its device's stream.
class NcclRank {
 public:
  explicit NcclRank(const LibraryRequest& request)
      : rank_(request.rank), size_(request.size), device_(request.device) {
    if (!why_not().empty()) return;
    UniqueId id{};
    if (rank_ == 0) {
      nccl_.check(nccl_.get_unique_id(&id), "ncclGetUniqueId");
      request.store->set("id", std::string_view(id.bytes.data(), id.bytes.size()));
    } else {
      const std::string text = request.store->get("id", Clock::now() + request.timeout);
      if (text.size() != id.bytes.size())
        throw std::runtime_error("nccl: rank 0 has published no unique id");
      std::memcpy(id.bytes.data(), text.data(), text.size());
    }
    nccl_.check(nccl_.init_rank(&comm_, size_, id, rank_), "ncclCommInitRank");
  }

  ~NcclRank() {
    if (comm_ != nullptr) nccl_.destroy(comm_);
  }
  NcclRank(const NcclRank&) = delete;
  NcclRank& operator=(const NcclRank&) = delete;

  // Why NCCL cannot be used; empty if it can.
  std::string why_not() const {
    if (device_ == nullptr) return "it works in the memory of GPUs: --device cuda";
    if (!nccl_.why_absent().empty()) return nccl_.why_absent();
    if (device_->count() < size_) {
      return fmt::format("it wants a GPU for each rank: {} ranks have {}", size_, device_->count());
    }
    return {};
  }

  std::string version() const {
    int number = 0;  // 22703 is 2.27.3
    if (!nccl_.why_absent().empty() || nccl_.get_version(&number) != 0) return {};
    return fmt::format("NCCL {}.{}.{}", number / 10000, number / 100 % 100, number % 100);
  }

  const Nccl& nccl() const { return nccl_; }
  Comm comm() const { return comm_; }
  int rank() const { return rank_; }
  int size() const { return size_; }
  void* stream() const { return device_->stream(); }
  void wait() const { device_->wait(); }

  void begin_group() const { nccl_.check(nccl_.group_start(), "ncclGroupStart"); }
  void end_group() const { nccl_.check(nccl_.group_end(), "ncclGroupEnd"); }
  void send(const void* data, std::size_t count, int type, int to) const {
    nccl_.check(nccl_.send(data, count, type, to, comm_, stream()), "ncclSend");
  }
  void receive(void* data, std::size_t count, int type, int from) const {
    nccl_.check(nccl_.receive(data, count, type, from, comm_, stream()), "ncclRecv");
  }

 private:
  Nccl nccl_;
  int rank_;
  int size_;
  std::shared_ptr<DeviceMemory> device_;
  Comm comm_ = nullptr;
};

class NcclLibrary final : public Library {
 public:
  explicit NcclLibrary(const LibraryRequest& request) : rank_(request) {}

  std::string name() const override { return "nccl"; }
  std::string transport() const override { return "nccl"; }
  std::string algorithm(const Problem&) const override { return "its choice"; }
  std::string version() const override { return rank_.version(); }
  bool enqueues() const override { return true; }

  std::string objection(const Problem& problem) const override {
    if (const std::string why = rank_.why_not(); !why.empty()) return why;
    const bool is_even = problem.count % static_cast<std::size_t>(rank_.size()) == 0;
    if (type_number(problem.type) < 0) return fmt::format("no {}", to_string(problem.type));
    if (is_reduction(problem.collective) && operation_number(problem.op) < 0)
      return fmt::format("no {}", to_string(problem.op));
    switch (problem.collective) {
      case Collective::kAllReduce:
      case Collective::kReduce:
      case Collective::kBroadcast:
        return {};
      case Collective::kReduceScatter:
      case Collective::kAllGather:
      case Collective::kGather:
      case Collective::kScatter:
      case Collective::kAllToAll:
        return is_even ? "" : "it takes equal chunks only";
      default:
        return "no such collective";
    }
  }

  // Only enqueues the call.
  void run(const Problem& problem, const void* in, void* out) override {
    const int type = type_number(problem.type);
    const int op = operation_number(problem.op);
    const std::size_t count = problem.count;
    const std::size_t share = count / static_cast<std::size_t>(rank_.size());
    const Nccl& nccl = rank_.nccl();
    const Comm comm = rank_.comm();
    void* const stream = rank_.stream();
    switch (problem.collective) {
      case Collective::kAllReduce:
        return nccl.check(nccl.all_reduce(in, out, count, type, op, comm, stream), "ncclAllReduce");
      case Collective::kReduceScatter:
        return nccl.check(nccl.reduce_scatter(in, out, share, type, op, comm, stream),
                          "ncclReduceScatter");
      case Collective::kAllGather:
        return nccl.check(nccl.all_gather(in, out, share, type, comm, stream), "ncclAllGather");
      case Collective::kBroadcast:
        return nccl.check(nccl.broadcast(out, out, count, type, kRoot, comm, stream),
                          "ncclBroadcast");
      case Collective::kReduce:
        return nccl.check(nccl.reduce(in, out, count, type, op, kRoot, comm, stream), "ncclReduce");
      default:
        return exchange(problem, static_cast<const std::byte*>(in), static_cast<std::byte*>(out));
    }
  }

 private:
  // Collectives that NCCL has no call for: messages in one group, as in nccl-tests.
  void exchange(const Problem& problem, const std::byte* in, std::byte* out) {
    const std::size_t count = problem.count / static_cast<std::size_t>(rank_.size());
    const std::size_t bytes = count * element_bytes(problem.type);
    const int type = type_number(problem.type);
    const bool is_gather = problem.collective == Collective::kGather;
    const bool is_scatter = problem.collective == Collective::kScatter;
    const bool is_root = rank_.rank() == kRoot;
    rank_.begin_group();
    for (int peer = 0; peer < rank_.size(); ++peer) {
      const auto offset = bytes * static_cast<std::size_t>(peer);
      const bool sends = is_gather ? peer == kRoot : !is_scatter || is_root;
      const bool receives = is_gather ? is_root : !is_scatter || peer == kRoot;
      if (sends) rank_.send(in + (is_gather ? 0 : offset), count, type, peer);
      if (receives) rank_.receive(out + (is_scatter ? 0 : offset), count, type, peer);
    }
    rank_.end_group();
  }

  NcclRank rank_;
};

// Sends and receives are one group, so that NCCL runs both at once.
class NcclPipe final : public Pipe {
 public:
  explicit NcclPipe(const LibraryRequest& request) : rank_(request) {}

  std::string library() const override { return "nccl"; }
  std::string level() const override { return "messages"; }
  std::string transport() const override { return "nccl"; }
  std::string version() const override { return rank_.version(); }
  std::string objection() const override { return rank_.why_not(); }
  bool enqueues() const override { return true; }

  void exchange(const Messages& out, const Messages& in) override {
    const int type = type_number(ElementType::kUint8);
    const int peer = 1 - rank_.rank();
    rank_.begin_group();
    for (std::size_t i = 0; i < out.count; ++i)
      rank_.send(out.first + i * out.bytes, out.bytes, type, peer);
    for (std::size_t i = 0; i < in.count; ++i)
      rank_.receive(in.first + i * in.bytes, in.bytes, type, peer);
    rank_.end_group();
  }

  void finish() override { rank_.wait(); }

 private:
  NcclRank rank_;
};

}  // namespace

std::vector<std::string_view> algorithms_of_nccl(Collective) { return {}; }

std::unique_ptr<Library> make_nccl(const LibraryRequest& request) {
  return std::make_unique<NcclLibrary>(request);
}

std::unique_ptr<Pipe> make_nccl_pipe(const LibraryRequest& request) {
  return std::make_unique<NcclPipe>(request);
}

}  // namespace kolo::bench
