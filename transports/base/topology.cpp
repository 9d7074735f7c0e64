// A rank publishes seven lines: machine, process, cores of the affinity mask, quota in cores ("-":
// none), simulated host (empty: the only one), device (empty: none), and the name of its unix
// socket (empty: none).
#include "transports/base/topology.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <charconv>
#include <random>
#include <set>

#include "transports/base/address_text.h"
#include "transports/error.h"
#include "transports/posix/host/caches.h"
#include "transports/posix/host/cores.h"
#include "transports/posix/host/identity.h"
#include "transports/posix/unix_socket.h"
#include "transports/store/all_gather.h"

namespace kolo::inline v0 {

namespace {

struct Place {
  std::string machine;
  std::string process;
  std::set<int> cores;
  double quota = 1e9;
  std::string host_id;
  std::string device;
  std::string listener;

  std::string host() const { return machine + "\n" + host_id; }
};

[[noreturn]] void refuse() {
  throw Error(ErrorCode::kProtocol, kNoPeer,
              "a rank published an unreadable location: does it run a different version of kolo?");
}

double parse_quota(const std::string& text) {
  double quota = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, quota);
  if (error != std::errc() || rest != end || !(quota > 0)) refuse();
  return quota;
}

Place parse_place(const std::string& text) {
  auto lines = stream_of(text);
  Place place;
  std::string cores;
  std::string quota;
  if (!std::getline(lines, place.machine) || !std::getline(lines, place.process) ||
      !std::getline(lines, cores) || !std::getline(lines, quota) ||
      !std::getline(lines, place.host_id)) {
    refuse();
  }
  std::getline(lines, place.device);
  std::getline(lines, place.listener);
  auto numbers = stream_of(cores);
  for (int core = 0; numbers >> core;) place.cores.insert(core);
  if (quota != "-") place.quota = parse_quota(quota);
  return place;
}

std::string random_name() {
  std::random_device random;
  return fmt::format("kolo-{:08x}{:08x}{:08x}{:08x}", random(), random(), random(), random());
}

bool reaches(const Place& own, const Place& other) {
  if (other.process == own.process) return true;
  if (other.listener.empty()) return false;
  try {
    posix::connect_unix(other.listener);  // nothing: its queue is full
    return true;
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kPeerLost) return false;
    throw;
  }
}

// The number of the first rank of this rank's machine.
int first_reached(const std::vector<Place>& places, int rank) {
  for (int peer = 0; peer < rank; ++peer) {
    if (reaches(places[static_cast<std::size_t>(rank)], places[static_cast<std::size_t>(peer)]))
      return peer;
  }
  return rank;
}

int parse_rank(const std::string& text, int size) {
  int rank = -1;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, rank);
  if (error != std::errc() || rest != end || rank < 0 || rank >= size) refuse();
  return rank;
}

// For each rank the first rank of its machine.
std::vector<int> find_machines(Store& store, int rank, const std::vector<Place>& places,
                               Deadline deadline) {
  const int size = static_cast<int>(places.size());
  std::vector<int> machines;
  for (const std::string& text :
       exchange(store, rank, size, "machine", fmt::to_string(first_reached(places, rank)), deadline,
                "say which ranks share their machine")) {
    machines.push_back(parse_rank(text, size));
  }
  return machines;
}

}  // namespace

std::string describe_location(std::string_view host_id, std::string_view device,
                              std::string_view listener) {
  const auto quota = posix::cgroup_quota_cores();
  return fmt::format("{}\n{}\n{}\n{}\n{}\n{}\n{}\n", posix::host_identity(),
                     posix::process_identity(), fmt::join(posix::affinity_cores(), " "),
                     quota ? fmt::format("{:.3f}", *quota) : "-", host_id, device, listener);
}

Topology topology_from(const std::vector<std::string>& places, int rank,
                       std::span<const int> machines) {
  const auto place_of = [&](std::size_t peer) {
    Place place = parse_place(places.at(peer));
    if (!machines.empty()) place.machine = fmt::to_string(machines[peer]);
    return place;
  };
  const Place own = place_of(static_cast<std::size_t>(rank));
  Topology result;
  result.local_ranks = 0;
  std::set<int> cores;
  double quota = own.quota;
  std::vector<std::string> names;  // of hosts, in the order of their numbers
  for (std::size_t peer = 0; peer < places.size(); ++peer) {
    const Place place = place_of(peer);
    result.devices.push_back(place.device);
    const auto name = std::ranges::find(names, place.host());
    result.hosts.push_back(static_cast<int>(name - names.begin()));
    if (name == names.end()) names.push_back(place.host());
    if (place.host() != own.host()) result.is_one_host = false;
    if (place.process != own.process || !result.is_one_host) result.is_one_process = false;
    if (place.machine != own.machine) continue;
    if (static_cast<int>(peer) < rank) ++result.local_index;
    ++result.local_ranks;
    cores.insert(place.cores.begin(), place.cores.end());
    quota = std::min(quota, place.quota);
  }
  const double usable = std::min(static_cast<double>(cores.size()), quota);
  result.local_cores = std::max(1, static_cast<int>(usable));
  const std::size_t cache_bytes =
      posix::share_of_caches(posix::last_level_caches({own.cores.begin(), own.cores.end()}),
                             {cores.begin(), cores.end()}, result.local_ranks);
  if (cache_bytes > 0) result.cache_bytes = cache_bytes;
  return result;
}

Topology find_topology(Store& store, int rank, int size, Deadline deadline,
                       std::string_view host_id, std::string_view device) {
  if (size == 1) return topology_from({describe_location(host_id, device)}, 0);
  const posix::UnixListener listener(size, random_name());  // until all ranks have tried it
  const auto texts =
      exchange(store, rank, size, "placement", describe_location(host_id, device, listener.name()),
               deadline, "join the job");
  std::vector<Place> places;
  for (const std::string& text : texts) places.push_back(parse_place(text));
  const bool is_one_process = std::ranges::all_of(
      places, [&](const Place& place) { return place.process == places[0].process; });
  if (is_one_process) return topology_from(texts, rank);
  return topology_from(texts, rank, find_machines(store, rank, places, deadline));
}

// A counter decides which rank is the first. That rank then sets the key.
void require_one_size(Store& store, int rank, int size, Deadline deadline) {
  if (store.add("sizes said", 1) == 1) return store.set("size", fmt::format("{} {}", rank, size));
  auto said = stream_of(store.get("size", deadline));
  int first = 0;
  int first_size = 0;
  const bool is_read = said >> first >> first_size && (said >> std::ws).eof();
  if (!is_read || first < 0 || first_size < 1) {
    throw Error(ErrorCode::kProtocol, kNoPeer,
                "a rank published an unreadable size: does it run a different version of kolo?");
  }
  if (first_size == size) return;
  throw Error(ErrorCode::kMismatch, first,
              fmt::format("rank {} says WORLD_SIZE={}, rank {} says {}: give all ranks the same",
                          rank, size, first, first_size));
}

}  // namespace kolo::inline v0
