// MPICH (ch4:ucx): UCX over shared memory, or over TCP. Its processes bind themselves to the cores
// of kolo's ranks.
#include <fmt/format.h>

#include <string_view>

#include "bench/peers/mpi.h"

namespace kolo::bench {

std::unique_ptr<Library> make_mpich(const LibraryRequest& request);
std::unique_ptr<Pipe> make_mpich_pipe(const LibraryRequest& request);
std::vector<std::string_view> algorithms_of_mpich(Collective collective);

namespace {

MpiPeer peer_of(const LibraryRequest& request) {
  StartCommand command;
  command.words = {KOLO_MPICH_LAUNCHER,
                   "-launcher",
                   "fork",
                   "-n",
                   fmt::format("{}", request.size),
                   worker_program("kolo-bench-mpich")};
  std::string transport = mpi_transport(request);
  if (transport == "tcp") {
    command.environment.emplace_back("UCX_TLS", "tcp,self");
    // Without the special path within a host: 5.5 us instead of 7 for 8 bytes of two ranks, and
    // never slower.
    command.environment.emplace_back("MPIR_CVAR_NOLOCAL", "1");
  } else if (request.transport == "ucx") {  // with kolo's UCX_TLS
    transport = "ucx";
    command.environment.emplace_back("MPIR_CVAR_NOLOCAL", "1");
  }
  MpiPeer peer{"mpich", "default", std::move(transport), std::move(command)};
  let_mpich_yield(request, peer);
  return peer;
}

}  // namespace

std::vector<std::string_view> algorithms_of_mpich(Collective) { return {}; }

std::unique_ptr<Library> make_mpich(const LibraryRequest& request) {
  return make_mpi(peer_of(request), request);
}

std::unique_ptr<Pipe> make_mpich_pipe(const LibraryRequest& request) {
  return make_mpi_pipe(peer_of(request), request);
}

}  // namespace kolo::bench
