// Open MPI, over its own transports (pml ob1: vader for shared memory, tcp) or over UCX. Its
// processes bind themselves to the cores of kolo's ranks.
#include <fmt/format.h>

#include <string_view>

#include "bench/peers/mpi.h"

namespace kolo::bench {

std::unique_ptr<Library> make_openmpi(const LibraryRequest& request);
std::unique_ptr<Pipe> make_openmpi_pipe(const LibraryRequest& request);
std::vector<std::string_view> algorithms_of_openmpi(Collective collective);

namespace {

using Parameter = std::pair<const char*, const char*>;

// Debian's UCX component accepts only fast networks; "any" lets it use TCP and shared memory.
constexpr Parameter kUcx[] = {
    {"pml", "ucx"}, {"opal_common_ucx_tls", "any"}, {"opal_common_ucx_devices", "any"}};
constexpr Parameter kRing[] = {{"coll_tuned_use_dynamic_rules", "1"},
                               {"coll_tuned_allreduce_algorithm", "4"}};

void add(std::vector<std::string>& words, const Parameter& parameter) {
  words.insert(words.end(), {"--mca", parameter.first, parameter.second});
}

MpiPeer peer_of(const LibraryRequest& request) {
  const bool is_tcp = mpi_transport(request) == "tcp";
  const bool is_ucx = request.algorithm == "ucx";
  StartCommand command;
  auto& words = command.words;
  words = {KOLO_OPENMPI_LAUNCHER,
           "--allow-run-as-root",
           "--oversubscribe",
           "--bind-to",
           "none",
           "-n",
           fmt::format("{}", request.size)};
  if (is_ucx) {
    for (const Parameter& parameter : kUcx) add(words, parameter);
    if (is_tcp) command.environment.emplace_back("UCX_TLS", "tcp,self");
  } else {
    add(words, {"pml", "ob1"});
    add(words, {"btl", is_tcp ? "tcp,self" : "vader,self"});
  }
  if (request.algorithm == "ring") {
    for (const Parameter& parameter : kRing) add(words, parameter);
  }
  if (is_oversubscribed(request)) add(words, {"mpi_yield_when_idle", "1"});
  words.push_back(worker_program("kolo-bench-openmpi"));
  const bool has_the_same = is_ucx && request.transport == "ucx";  // with kolo's UCX_TLS
  return {is_ucx ? "openmpi:ucx" : "openmpi", request.algorithm == "ring" ? "ring" : "default",
          has_the_same ? "ucx" : mpi_transport(request), std::move(command)};
}

}  // namespace

std::vector<std::string_view> algorithms_of_openmpi(Collective collective) {
  if (collective == Collective::kAllReduce) return {"ucx", "ring"};
  return {"ucx"};
}

std::unique_ptr<Library> make_openmpi(const LibraryRequest& request) {
  return make_mpi(peer_of(request), request);
}

std::unique_ptr<Pipe> make_openmpi_pipe(const LibraryRequest& request) {
  return make_mpi_pipe(peer_of(request), request);
}

}  // namespace kolo::bench
