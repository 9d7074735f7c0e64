#include "bench/peers/mpi.h"

#include <fmt/format.h>

#include <filesystem>
#include <limits>
#include <utility>

#include "bench/measure/buffer.h"
#include "bench/measure/cores.h"
#include "transports/launch/launch.h"

namespace kolo::bench {
namespace {

bool has_type(ElementType type) {
  switch (type) {
    case ElementType::kFloat16:
    case ElementType::kBFloat16:
    case ElementType::kFloat8E4M3:
    case ElementType::kFloat8E5M2:
      return false;
    default:
      return true;
  }
}

class Mpi : public Library {
 public:
  Mpi(MpiPeer peer, const LibraryRequest& request)
      : peer_(std::move(peer)), workers_(peer_.library, request, peer_.command) {}

  std::string name() const override { return peer_.library; }
  std::string transport() const override { return peer_.transport; }
  std::string algorithm(const Problem&) const override { return peer_.algorithm; }
  std::string version() const override { return workers_.version(); }
  std::string caution() const override { return peer_.caution; }

  std::string objection(const Problem& problem) const override {
    if (has_servers(problem.collective)) return "no such collective in MPI";
    if (problem.count > std::numeric_limits<int>::max()) return "counts are 32 bits wide in MPI-3";
    if (!is_reduction(problem.collective)) return {};
    if (problem.op == ReduceOp::kAverage || !has_type(problem.type))
      return fmt::format("no {} of {}", to_string(problem.op), to_string(problem.type));
    return {};
  }

  bool runs_in_workers() const override { return true; }
  PassResult run_pass(const PassRequest& turn, const Buffer& data, const Buffer& input) override {
    return workers_.run_pass(turn, data, input);
  }
  void run(const Problem&, const void*, void*) override {}  // never called: runs_in_workers()

 private:
  MpiPeer peer_;
  WorkerProcesses workers_;
};

class MpiPipe : public Pipe {
 public:
  MpiPipe(MpiPeer peer, const LibraryRequest& request)
      : peer_(std::move(peer)), workers_(peer_.library, request, peer_.command) {}

  std::string library() const override { return peer_.library; }
  std::string level() const override { return "messages"; }
  std::string transport() const override { return peer_.transport; }
  std::string version() const override { return workers_.version(); }

  bool runs_in_workers() const override { return true; }
  P2pPassResult run_pass(const P2pPassRequest& turn) override { return workers_.run_pass(turn); }
  void exchange(const Messages&, const Messages&) override {}  // never called: runs_in_workers()

 private:
  MpiPeer peer_;
  WorkerProcesses workers_;
};

}  // namespace

std::string mpi_transport(const LibraryRequest& request) {
  return request.transport == "tcp" ? "tcp" : "shm";
}

bool is_oversubscribed(const LibraryRequest& request) {
  return static_cast<std::size_t>(request.size) > available_cores().size();
}

void let_mpich_yield(const LibraryRequest& request, MpiPeer& peer) {
  if (!is_oversubscribed(request)) return;
  peer.command.environment.emplace_back("MPIR_CVAR_POLLS_BEFORE_YIELD", "1");
  const std::size_t cores = available_cores().size();
  peer.caution = fmt::format(
      "{} ranks share {} {}, and a waiting rank keeps its core even if it is told to yield: "
      "rows of milliseconds come from that (bench/README.md)",
      request.size, cores, cores == 1 ? "core" : "cores");
}

std::string worker_program(const std::string& name) {
  const auto folder = std::filesystem::path(own_program()).parent_path();
  return (folder / "../libexec/kolo" / name).lexically_normal().string();
}

std::unique_ptr<Library> make_mpi(MpiPeer peer, const LibraryRequest& request) {
  return std::make_unique<Mpi>(std::move(peer), request);
}

std::unique_ptr<Pipe> make_mpi_pipe(MpiPeer peer, const LibraryRequest& request) {
  return std::make_unique<MpiPipe>(std::move(peer), request);
}

}  // namespace kolo::bench
