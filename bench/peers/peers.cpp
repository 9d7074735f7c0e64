#include "bench/peers/peers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <stdexcept>

#include "transports/base/suggestion.h"

namespace kolo::bench {

#define KOLO_ROW(name)                                                     \
  std::unique_ptr<Library> make_##name(const LibraryRequest& request);     \
  std::unique_ptr<Pipe> make_##name##_pipe(const LibraryRequest& request); \
  std::vector<std::string_view> algorithms_of_##name(Collective collective);
#include "peer_table.inc"
#undef KOLO_ROW

namespace {

struct Row {
  std::string_view name;
  std::unique_ptr<Library> (*make)(const LibraryRequest&);
  std::unique_ptr<Pipe> (*make_pipe)(const LibraryRequest&);
  std::vector<std::string_view> (*algorithms)(Collective);
};

// The last row ends the table, which may have no other row.
constexpr Row kPeers[] = {
#define KOLO_ROW(name) {#name, make_##name, make_##name##_pipe, algorithms_of_##name},
#include "peer_table.inc"
#undef KOLO_ROW
    {"", nullptr, nullptr, nullptr}};

struct Absent {
  std::string_view peer;
  std::string_view way_out;
};

// Known peers that may be missing in a build, and how to get them.
constexpr Absent kAbsent[] = {
    {"gloo",
     "Debian's package is libgloo-dev: cmake/setup.sh --with peers installs it, then configure and "
     "build again"},
    {"mpich",
     "Debian's packages are mpich and libmpich-dev: cmake/setup.sh --with peers installs them, "
     "then configure and build again"},
    {"mpich_ofi",
     "it is an MPICH that can go over libfabric, as PyPI's package mpich: python3 -m venv DIR, "
     "DIR/bin/pip install mpich, then configure with -DKOLO_MPICH_OFI=DIR and build again"},
    {"nccl", "it is in builds with CUDA, where nvcc is found"},
    {"openmpi",
     "Debian's packages are openmpi-bin and libopenmpi-dev: cmake/setup.sh --with peers installs "
     "them, then configure and build again"},
};

// Libraries that are peers in no build.
constexpr Absent kNoPeers[] = {
    {"ucx",
     "UCX has no collectives: openmpi:ucx is Open MPI over it, mpich uses it as well; p2p has bare "
     "UCX beside kolo by --transport ucx --level library"}};

constexpr std::string_view kOfDevices[] = {"nccl"};

std::string_view base_of(std::string_view name) { return name.substr(0, name.find(':')); }

const Row& find_peer(std::string_view name) {
  const std::string_view base = base_of(name);
  for (const Row& row : kPeers) {
    if (row.make != nullptr && row.name == base) return row;
  }
  const auto found = peer_names();
  const std::vector<std::string> names(found.begin(), found.end());
  const auto known = std::ranges::find(kAbsent, base, &Absent::peer);
  throw std::invalid_argument(
      fmt::format("--against {}: {} is not among the peers in this build ({}){}", name, base,
                  names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", ")),
                  known == std::end(kAbsent) ? did_you_mean(suggested_word(base, names))
                                             : fmt::format("; {}", known->way_out)));
}

std::string_view algorithm_of(std::string_view name) {
  const auto colon = name.find(':');
  return colon == std::string_view::npos ? "" : name.substr(colon + 1);
}

}  // namespace

std::string_view why_no_peer(std::string_view name) {
  const auto known = std::ranges::find(kNoPeers, name, &Absent::peer);
  return known == std::end(kNoPeers) ? std::string_view() : known->way_out;
}

bool needs_device(std::string_view name) {
  return std::ranges::find(kOfDevices, base_of(name)) != std::end(kOfDevices);
}

std::string why_left_out(std::string_view name) {
  if (needs_device(name)) return "it works on the memory of devices alone: add --device cuda";
  return std::string(why_no_peer(name));
}

std::vector<std::string_view> peer_names() {
  std::vector<std::string_view> names;
  for (const Row& row : kPeers) {
    if (row.make != nullptr) names.push_back(row.name);
  }
  return names;
}

std::vector<std::string> peer_variants() {
  std::vector<std::string> names;
  for (const Row& row : kPeers) {
    if (row.make == nullptr) continue;
    names.emplace_back(row.name);
    const std::size_t plain = names.size();
    for (int i = 0; i <= static_cast<int>(Collective::kMessage); ++i) {
      for (const std::string_view algorithm : row.algorithms(static_cast<Collective>(i))) {
        std::string name = fmt::format("{}:{}", row.name, algorithm);
        if (std::find(names.begin() + static_cast<std::ptrdiff_t>(plain), names.end(), name) ==
            names.end())
          names.push_back(std::move(name));
      }
    }
  }
  return names;
}

std::unique_ptr<Library> make_peer(std::string_view name, LibraryRequest request) {
  const Row& row = find_peer(name);
  request.algorithm = algorithm_of(name);
  return row.make(request);
}

std::unique_ptr<Pipe> make_peer_pipe(std::string_view name, const PipeRequest& request) {
  constexpr int kRanks = 2;
  LibraryRequest same;
  same.rank = request.rank;
  same.size = kRanks;
  same.store = request.store;
  same.transport = request.transport;
  same.timeout = request.timeout;
  same.algorithm = algorithm_of(name);
  same.device = request.device;
  return find_peer(name).make_pipe(same);
}

void require_peer(std::string_view name, Collective collective) {
  const Row& row = find_peer(name);
  if (name == row.name) return;
  const auto names = row.algorithms(collective);
  const std::string_view algorithm = algorithm_of(name);
  if (std::find(names.begin(), names.end(), algorithm) != names.end()) return;
  throw std::invalid_argument(fmt::format(
      "--against {}: {} has no algorithm '{}' for {}; {}", name, row.name, algorithm,
      to_string(collective),
      names.empty() ? "it offers no choice" : fmt::format("it has {}", fmt::join(names, ", "))));
}

}  // namespace kolo::bench
