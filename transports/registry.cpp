// Table of transports, and the choice of "auto".
#include "transports/registry.h"

#include <fmt/format.h>
#include <algorithm>
#include <new>
#include <optional>
#include <stdexcept>
#include <thread>
#include <utility>

#include "transports/base/address_text.h"
#include "transports/base/check.h"
#include "transports/base/disabled_transports.h"
#include "transports/base/mixed.h"
#include "transports/base/staged.h"
#include "transports/base/topology.h"
#include "transports/base/transport_kind.h"
#include "transports/decorators/decorate.h"
#include "transports/error.h"
#include "transports/plugin/load.h"
#include "transports/plugin/transport.h"
#include "transports/posix/host/rdma.h"
#include "transports/settings.h"
#include "transports/store/all_gather.h"

namespace kolo::inline v0 {

#define KOLO_ROW(name) TransportKind name##_transport();
#include "transport_table.inc"
#undef KOLO_ROW

namespace {

// The shortest reach first; among equals, in the order of CMakeLists.txt.
std::vector<TransportKind> transport_kinds() {
  std::vector<TransportKind> kinds = {
#define KOLO_ROW(name) name##_transport(),
#include "transport_table.inc"
#undef KOLO_ROW
  };
  std::stable_sort(kinds.begin(), kinds.end(), [](const TransportKind& a, const TransportKind& b) {
    return a.reach < b.reach;
  });
  return kinds;
}

const TransportKind* find(const std::vector<TransportKind>& kinds, std::string_view name) {
  const auto found = std::find_if(kinds.begin(), kinds.end(),
                                  [name](const TransportKind& kind) { return kind.name == name; });
  return found == kinds.end() ? nullptr : &*found;
}

TransportKind kind_of(const plugin::Plugin& outside) {
  TransportKind kind;
  kind.name = outside.table.name;
  kind.reach = static_cast<Reach>(outside.table.reach);
  kind.needs_topology = kind.reach != Reach::kNetwork;
  kind.make = [outside](const TransportRequest& request) {
    return plugin::make_plugged(outside, request);
  };
  return kind;
}

// Longest segment within hosts, beside a transport between hosts that takes longer ones: on long
// fat networks all channels of a schedule carry segments of that length. Shorter ones use as much
// memory as before, since pages are allocated at their first use.
constexpr std::size_t kLocalSegment = std::size_t{256} << 10;

std::unique_ptr<Transport> make_parts(const TransportKind& local, const TransportKind& remote,
                                      const TransportRequest& request) {
  TransportRequest within = request;
  TransportRequest between = request;
  within.store = prefixed(request.store, "local/");
  between.store = prefixed(request.store, "remote/");
  if (request.segment_bytes == 0) within.segment_bytes = kLocalSegment;
  const auto topology = topology_of(request);
  const auto& hosts = topology->hosts;
  for (const int host : hosts) {
    within.peers.push_back(host == hosts[static_cast<std::size_t>(request.rank)]);
    between.peers.push_back(!within.peers.back());
  }
  auto part = local.make(within);
  return make_mixed(std::move(part), remote.make(between), within.peers);
}

// `local` within each host, `remote` between hosts.
TransportKind mixed(const TransportKind& local, const TransportKind& remote) {
  TransportKind kind;
  kind.name = fmt::format("{}+{}", local.name, remote.name);
  kind.needs_topology = true;
  kind.check_settings = remote.check_settings;
  kind.why_unusable = [local, remote]() -> std::string {
    for (const TransportKind& part : {local, remote}) {
      if (const std::string why = part.why_unusable == nullptr ? "" : part.why_unusable();
          !why.empty())
        return fmt::format("{}: {}", part.name, why);
    }
    return "";
  };
  kind.make = [local, remote](const TransportRequest& request) {
    return make_parts(local, remote, request);
  };
  return kind;
}

// A transport of this build, or from outside, or two joined by "+".
std::optional<TransportKind> find_kind(const std::vector<TransportKind>& kinds,
                                       std::string_view name) {
  if (const TransportKind* kind = find(kinds, name)) return *kind;
  const std::size_t plus = name.find('+');
  const TransportKind* const local = find(kinds, name.substr(0, plus));
  if (plus != std::string_view::npos && local != nullptr && local->can_leave_out) {
    const auto remote = find_kind(kinds, name.substr(plus + 1));
    if (!remote || remote->reach != Reach::kNetwork) return std::nullopt;
    return mixed(*local, *remote);
  }
  if (const auto outside = plugin::find(name)) return kind_of(*outside);
  return std::nullopt;
}

Reach needed_reach(const Topology& placement) {
  if (placement.is_one_process) return Reach::kProcess;
  return placement.is_one_host ? Reach::kHost : Reach::kNetwork;
}

bool is_usable(const TransportKind& kind) {
  return kind.is_for_auto && (kind.why_unusable == nullptr || kind.why_unusable().empty());
}

// "ucx:InfiniBand ": the transports that can use this host's RDMA ports, with the link layers.
std::string names_by_rdma(const std::vector<TransportKind>& kinds,
                          const TransportRequest& request) {
  const auto links = request.rdma_links ? *request.rdma_links : posix::rdma_links();
  if (links.empty()) return "";
  const Settings settings = read_settings();
  std::string names;
  for (const auto& kind : kinds) {
    if (kind.uses_rdma == nullptr || !kind.uses_rdma(settings) || !is_usable(kind)) continue;
    for (const std::string& link : links) names += fmt::format("{}:{} ", kind.name, link);
  }
  return names;
}

// The names of the transports that this rank can use, separated by blanks. The search ends at one
// that always works and reaches any host: later ones would not be chosen, and looking for their
// libraries takes time.
std::string usable_names(const std::vector<TransportKind>& kinds, const TransportRequest& request) {
  std::string names = " ";
  if (needed_reach(*request.topology) == Reach::kNetwork) names += names_by_rdma(kinds, request);
  for (const auto& kind : kinds) {
    if (is_usable(kind)) names += kind.name + " ";
    if (kind.why_unusable == nullptr && kind.reach == Reach::kNetwork) break;
  }
  return names;
}

// How long the first failure may take to reach the store's readers, after a peer that knew it has
// gone.
constexpr auto kCauseTakes = std::chrono::milliseconds(200);

// While a transport is made, a peer may vanish because it learned of a failure first. Then that
// failure is reported.
std::unique_ptr<Transport> make_or_tell_why(const TransportKind& kind,
                                            const TransportRequest& request) {
  try {
    try {
      return kind.make(request);
    } catch (const std::bad_alloc&) {
      throw Error(
          ErrorCode::kOutOfMemory, kNoPeer,
          "there is not enough memory to start: raise ulimit -v and ulimit -d, or the limit of "
          "the control group");
    }
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kAborted) throw;
    const bool is_lost = error.code() == ErrorCode::kPeerLost;
    const auto deadline = Clock::now() + (is_lost ? kCauseTakes : std::chrono::milliseconds(0));
    do {
      if (const auto cause = request.store->failure())
        throw Error(ErrorCode::kAborted, kNoPeer, *cause);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    } while (Clock::now() < deadline);
    const std::string_view text = error.what();
    if (error.code() != ErrorCode::kSystem || text.starts_with("rank ")) throw;
    throw Error(error.code(), error.peer(),
                fmt::format("rank {}: {}: {}", request.rank, kind.name, text));
  }
}

// The transport of "auto". `why_staged`: why it does not serve the ranks' devices, though a
// transport of this build reaches them.
struct Choice {
  TransportKind kind;
  std::string why_staged = {};
};

bool has_neighbours(const std::vector<int>& hosts) {
  return std::ranges::any_of(hosts,
                             [&hosts](int host) { return std::ranges::count(hosts, host) > 1; });
}

// True if `word` is in the usable_names() of every rank.
bool all_say(const std::vector<std::string>& texts, const std::string& word) {
  return std::ranges::all_of(texts, [padded = fmt::format(" {} ", word)](const std::string& text) {
    return text.find(padded) != std::string::npos;
  });
}

bool all_have_rdma(const TransportKind& kind, const std::vector<std::string>& texts) {
  return std::ranges::any_of(posix::kRdmaLinks, [&](std::string_view link) {
    return all_say(texts, fmt::format("{}:{}", kind.name, link));
  });
}

// The best transport that joins all ranks: the first that uses RDMA on all hosts, else the first
// that all ranks can use; null: none. Sets `local` to the best transport of a shorter reach that
// can run beside it, for the ranks of one host.
const TransportKind* best_of(const std::vector<TransportKind>& kinds, Reach needed,
                             const std::vector<std::string>& texts, const TransportKind*& local) {
  const TransportKind* best = nullptr;
  for (const auto& kind : kinds) {
    const bool is_usable_by_all = all_say(texts, kind.name);
    if (kind.reach < needed) {
      if (local == nullptr && kind.can_leave_out && is_usable_by_all) local = &kind;
      continue;
    }
    if (all_have_rdma(kind, texts)) return &kind;
    if (best == nullptr && is_usable_by_all) best = &kind;
  }
  return best;
}

Choice choose(const std::vector<TransportKind>& kinds, const TransportRequest& request) {
  const Topology& placement = *request.topology;
  const bool has_devices = std::ranges::any_of(
      request.devices, [](const std::string& device) { return !device.empty(); });
  Choice choice;
  for (const auto& kind : kinds) {
    const bool reaches = kind.reach >= needed_reach(placement);
    if (!has_devices || !reaches || kind.why_not_serving == nullptr) continue;
    const std::string why = kind.why_not_serving(request);
    if (why.empty()) return {kind};
    if (choice.why_staged.empty()) choice.why_staged = why;
  }
  const auto texts =
      exchange(*request.store, request.rank, request.size, "usable", usable_names(kinds, request),
               request.deadline, "say which transports they can use");
  const TransportKind* local = nullptr;  // within each host, if none of its reach joins all
  const TransportKind* best = best_of(kinds, needed_reach(placement), texts, local);
  if (best == nullptr) {
    throw Error(
        ErrorCode::kUnavailable, kNoPeer,
        fmt::format("rank {}: transport=auto finds no transport that works on all {} ranks (this "
                    "rank can use:{}); build kolo with tcp on every host, and see `kolo-bench "
                    "transports` for the reasons",
                    request.rank, request.size, texts[static_cast<std::size_t>(request.rank)]));
  }
  const bool is_mixed = local != nullptr && has_neighbours(placement.hosts);
  choice.kind = is_mixed ? mixed(*local, *best) : *best;
  return choice;
}

// The request of a rank; three lines in the store.
struct Asked {
  std::string name;
  std::string host_id;
  std::string shape;
};

Asked parse_asked(const std::string& text) {
  auto lines = stream_of(text);
  Asked asked;
  std::getline(lines, asked.name);
  std::getline(lines, asked.host_id);
  std::getline(lines, asked.shape);
  return asked;
}

std::string shape_or_none(const std::string& shape) {
  return shape.empty() ? "none" : fmt::format("'{}'", shape);
}

// Compares the requests of all ranks. Different ones would end in a timeout, or in misread
// addresses. `kind`: null if it is not chosen yet.
void agree_on(std::string_view name, const TransportKind* kind, const TransportRequest& request) {
  const auto texts = exchange(*request.store, request.rank, request.size, "asked",
                              fmt::format("{}\n{}\n{}", name, request.host_id, request.shape),
                              request.deadline, "join the job");
  const Asked first = parse_asked(texts[0]);
  for (std::size_t peer = 1; peer < texts.size(); ++peer) {
    const Asked asked = parse_asked(texts[peer]);
    const int other = static_cast<int>(peer) == request.rank ? 0 : static_cast<int>(peer);
    if (asked.name != first.name) {
      throw Error(ErrorCode::kMismatch, other,
                  fmt::format("rank 0 asked for transport {}, rank {} for {}: ask for the same on "
                              "every rank",
                              first.name, peer, asked.name));
    }
    if (asked.shape != first.shape) {
      throw Error(ErrorCode::kMismatch, other,
                  fmt::format("rank 0 has the shape {}, rank {} has {} (KOLO_SHAPE): give the same "
                              "to every rank",
                              shape_or_none(first.shape), peer, shape_or_none(asked.shape)));
    }
    if (asked.host_id != first.host_id && kind != nullptr && kind->reach != Reach::kNetwork) {
      throw Error(
          ErrorCode::kUnavailable, other,
          fmt::format("rank 0 counts as host '{}', rank {} as host '{}' (KOLO_HOST_ID), and "
                      "{} does not reach from one host to another: use auto",
                      first.host_id, peer, asked.host_id, name));
    }
  }
}

void require_known(const std::vector<TransportKind>& kinds, std::string_view name) {
  if (find_kind(kinds, name)) return;
  throw std::invalid_argument(refusal_of(name, transport_names(), disabled_transports()));
}

// Stages device memory over a transport that does not serve it. `why`: why the transport that
// serves devices is not used; may be empty.
std::unique_ptr<Transport> make_for_device(const TransportKind& kind,
                                           const TransportRequest& request,
                                           const std::string& why = "") {
  const auto make = [&] { return decorate(make_or_tell_why(kind, request), request); };
  if (!request.device || kind.why_not_serving != nullptr) return make();
  StagedSettings staged;
  staged.device = request.device->number;
  staged.driver = request.device->driver;
  staged.why = why;
  return make_staged(make, kind.name, request.rank, staged);
}

}  // namespace

std::shared_ptr<const Topology> topology_of(const TransportRequest& request) {
  if (request.topology) return request.topology;
  return std::make_shared<const Topology>(
      find_topology(*request.store, request.rank, request.size, request.deadline, request.host_id));
}

std::vector<std::string> transport_names() {
  std::vector<std::string> names;
  for (const auto& kind : transport_kinds()) names.push_back(kind.name);
  return names;
}

std::vector<TransportFact> transport_facts() {
  constexpr const char* kReaches[] = {"threads of a process", "processes of a host", "any host"};
  std::vector<TransportFact> facts;
  for (const auto& kind : transport_kinds()) {
    TransportFact fact{kind.name, kReaches[static_cast<std::size_t>(kind.reach)], {}, {}};
    if (kind.why_unusable != nullptr) fact.why_unusable = kind.why_unusable();
    if (kind.ways != nullptr && fact.why_unusable.empty()) fact.ways = kind.ways();
    facts.push_back(std::move(fact));
  }
  return facts;
}

std::string resolve_transport(std::string_view name) {
  const auto settings = read_settings();
  const bool is_from_environment = name == "auto" && !settings.transport.empty();
  if (is_from_environment) name = settings.transport;
  const auto kinds = transport_kinds();
  try {
    if (name != "auto") require_known(kinds, name);
  } catch (const std::invalid_argument& error) {
    throw std::invalid_argument(
        fmt::format("{}{}", is_from_environment ? "KOLO_TRANSPORT: " : "", error.what()));
  }
  if (const auto kind = find_kind(kinds, name); kind && kind->check_settings != nullptr)
    kind->check_settings(settings);
  for (const auto& kind : kinds) {
    if (name == "auto" && kind.check_settings != nullptr) kind.check_settings(settings);
  }
  return std::string(name);
}

std::string why_unusable(std::string_view name) {
  const auto kind = find_kind(transport_kinds(), name);
  return kind && kind->why_unusable != nullptr ? kind->why_unusable() : "";
}

std::unique_ptr<Transport> make_beneath(std::string_view above, const TransportRequest& request) {
  auto kinds = transport_kinds();
  std::erase_if(kinds, [above](const TransportKind& kind) { return kind.name == above; });
  TransportRequest complete = request;
  complete.topology = topology_of(request);
  return make_or_tell_why(choose(kinds, complete).kind, complete);
}

bool joins_processes(std::string_view name) {
  const auto kind = find_kind(transport_kinds(), name);
  return !kind || kind->reach != Reach::kProcess;
}

std::unique_ptr<Transport> make_transport(std::string_view name, const TransportRequest& request) {
  check(request.size >= 1 && request.rank >= 0 && request.rank < request.size,
        "make_transport: a rank must be from 0 to size - 1");
  check(request.store != nullptr, "make_transport: a transport needs a store");
  const auto settings = read_settings();
  TransportRequest complete = request;
  if (complete.segment_bytes == 0) complete.segment_bytes = settings.segment_bytes;
  if (complete.host_id.empty()) complete.host_id = settings.host_id;
  if (complete.shape.empty()) complete.shape = settings.shape;
  if (complete.fault.empty()) complete.fault = settings.fault;
  if (complete.trace.empty()) complete.trace = settings.trace;
  complete.segment_bytes =
      (complete.segment_bytes + kSegmentAlignment - 1) / kSegmentAlignment * kSegmentAlignment;

  const auto kinds = transport_kinds();
  const std::string resolved = resolve_transport(name);
  const auto kind = find_kind(kinds, resolved);
  const std::string_view options =
      std::string_view(resolved).substr(std::min(resolved.find('?'), resolved.size()));
  agree_on(kind ? fmt::format("{}{}", kind->name, options) : resolved, kind ? &*kind : nullptr,
           complete);
  if (!kind || kind->needs_topology || !complete.shape.empty())
    complete.topology = topology_of(complete);
  if (kind) return make_for_device(*kind, complete);
  const Choice chosen = choose(kinds, complete);
  try {
    return make_for_device(chosen.kind, complete, chosen.why_staged);
  } catch (const RefusedByAll& refused) {
    if (chosen.kind.why_not_serving == nullptr) throw;
    TransportRequest instead = complete;
    instead.store = prefixed(complete.store, "staged/");
    instead.devices.clear();
    return make_for_device(choose(kinds, instead).kind, instead, refused.what());
  }
}

}  // namespace kolo::inline v0
