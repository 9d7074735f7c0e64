// MPICH over libfabric (ch4:ofi), with the provider of the transport ofi. All its data goes there,
// also within a host. Its processes bind themselves to the cores of kolo's ranks.
#include <fmt/format.h>

#include <string_view>

#include "bench/peers/mpi.h"
#include "transports/settings.h"

namespace kolo::bench {

std::unique_ptr<Library> make_mpich_ofi(const LibraryRequest& request);
std::unique_ptr<Pipe> make_mpich_ofi_pipe(const LibraryRequest& request);
std::vector<std::string_view> algorithms_of_mpich_ofi(Collective collective);

namespace {

// The provider: shm beside shm, tcp beside tcp; beside others KOLO_OFI_PROVIDER, or tcp if it is
// not set, as for ofi.
std::string provider_beside(const LibraryRequest& request) {
  if (request.transport == "shm" || request.transport == "tcp") return request.transport;
  const std::string asked = read_settings().ofi_provider;
  return asked.empty() ? "tcp" : asked.substr(0, asked.find(';'));
}

MpiPeer peer_of(const LibraryRequest& request) {
  const std::string provider = provider_beside(request);
  StartCommand command;
  command.words = {KOLO_MPICH_OFI_LAUNCHER,
                   "-launcher",
                   "fork",
                   "-n",
                   fmt::format("{}", request.size),
                   worker_program("kolo-bench-mpich_ofi")};
  command.environment = {
      {"MPIR_CVAR_CH4_NETMOD", "ofi"}, {"MPIR_CVAR_NOLOCAL", "1"}, {"FI_PROVIDER", provider}};
  const bool is_ours = request.transport == "ofi";
  MpiPeer peer{"mpich_ofi", "default", is_ours ? "ofi" : provider, std::move(command)};
  let_mpich_yield(request, peer);
  return peer;
}

}  // namespace

std::vector<std::string_view> algorithms_of_mpich_ofi(Collective) { return {}; }

std::unique_ptr<Library> make_mpich_ofi(const LibraryRequest& request) {
  return make_mpi(peer_of(request), request);
}

std::unique_ptr<Pipe> make_mpich_ofi_pipe(const LibraryRequest& request) {
  return make_mpi_pipe(peer_of(request), request);
}

}  // namespace kolo::bench
