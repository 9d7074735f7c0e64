// Fuzzer of the values that ranks exchange through the store and in headers: endpoint addresses,
// host placement, sizes, costs, call headers, groups, awaited ranks and causes of failure; and of
// the table of KOLO_TUNING.
#include <array>
#include <bit>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

#include "collectives/algorithms/algorithm_table.h"
#include "collectives/engine/failure_text.h"
#include "collectives/engine/group_calls.h"
#include "collectives/engine/missing_connections.h"
#include "collectives/executor/call_header.h"
#include "collectives/planner/costs_text.h"
#include "collectives/planner/tuning.h"
#include "test/fuzz/input.h"
#include "transports/base/liveness.h"
#include "transports/base/topology.h"
#include "transports/error.h"
#include "transports/shm/address.h"
#include "transports/tcp/address.h"

using namespace kolo;
using namespace kolo::fuzz;

namespace {

void take_endpoint_address(const std::string& text) {
  const tcp::EndpointAddress address = tcp::address_from_text(text, 1);
  const tcp::EndpointAddress again = tcp::address_from_text(tcp::to_text(address), 1);
  require(
      again.token == address.token && again.hosts == address.hosts && again.port == address.port,
      "an endpoint address survives writing and reading");
  require(!address.address().empty(), "an endpoint address has a host and a port");
}

void take_address(const std::string& text) {
  const shm::EndpointAddress address = shm::address_from_text(text, 1);
  const shm::EndpointAddress again = shm::address_from_text(shm::to_text(address), 1);
  require(again.socket == address.socket && again.ticket[1] == address.ticket[1],
          "an address says the same again");
}

void take_liveness_address(const std::string& text) {
  const auto address = liveness_address_from_text(text);
  if (!address) return;
  const auto again = liveness_address_from_text(to_text(*address));
  require(again && again->unix_name == address->unix_name && again->tcp_host == address->tcp_host &&
              again->tcp_port == address->tcp_port && again->ticket == address->ticket,
          "a liveness address says the same again");
}

void take_places(const std::string& text) {
  static const std::string own = describe_location("");
  const Topology placement = topology_from({own, text, own}, 0);
  require(placement.hosts.size() == 3 && placement.local_cores >= 1 && placement.local_ranks >= 2 &&
              placement.local_index < placement.local_ranks,
          "a placement is of all ranks");
}

// Parses the job size that rank 0 has published; this rank expects a size of 2.
void take_size(const std::string& text) {
  const auto store = make_local_store();
  store->add("sizes said", 1);
  store->set("size", text);
  try {
    require_one_size(*store, 1, 2, Clock::now());
    require(text.find('2') != std::string::npos, "the same size is said");
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kMismatch) throw;
    require(error.peer() >= 0, "the peer that gave another size is a rank");
  }
}

void take_costs(const std::string& text) {
  const Costs costs = costs_from(text);
  require(costs_from(to_text(costs)) == costs, "costs come back the same to the bit");
}

void take_tuning(const std::string& text) {
  const TuningTable table = TuningTable::parse(text, "the table");
  require(TuningTable::parse(table.format(), "its text").points() == table.points(),
          "a table says the same again");
  for (const TuningPoint& point : table.points())
    require(table.find(point.collective, point.ranks, point.transport, point.bytes).has_value(),
            "a point speaks for its own size");
}

void take_failure(const std::string& text) {
  const Error failure = failure_from(text);
  require(failure.peer() >= kNoPeer, "a failure has a rank or kNoPeer");
  const Error again = failure_from(to_text(failure));
  require(again.code() == failure.code() && again.peer() == failure.peer() &&
              std::string_view(again.what()) == failure.what(),
          "a failure says the same again");
}

void take_awaited(Input& input) {
  const int size = input.number<std::uint8_t>();
  const std::string published(input.take_all());
  require(missing_connections_table(std::array{published}).size() < 4096, "a table is short");
  const auto awaited = wait_edges_from(published, size);
  for (const WaitEdge& one : awaited)
    require(one.rank >= 0 && one.rank < size, "the awaited peer is a rank of the job");
  const std::string text = to_text(awaited);
  require(to_text(wait_edges_from(text, size)) == text, "wait edges come back the same");
}

void take_group(const std::string& text) {
  const auto call = group_call_from(text);
  require(!call || group_call_from(to_text(*call)) == call, "a group's call says the same again");
}

// Two headers. The first is this rank's, with an existing collective and algorithm.
void take_headers(Input& input) {
  CallHeader mine = input.number<CallHeader>();
  const std::array known = {Collective::kAllReduce, Collective::kBroadcast, Collective::kBarrier};
  mine.collective = known[input.below(known.size())];
  mine.op = ReduceOp::kSum;
  mine.type = ElementType::kFloat32;
  CallHeader theirs = input.number<CallHeader>();
  require(!describe(theirs).empty(), "a call has a description");
  require(!describe_mismatch(1, theirs, 0, mine).empty(), "so has a mismatch");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input input(data, size);
  const char kind = input.number<char>();
  try {
    switch (kind) {
      case 'c':
        take_endpoint_address(std::string(input.take_all()));
        break;
      case 'a':
        take_address(std::string(input.take_all()));
        break;
      case 'l':
        take_liveness_address(std::string(input.take_all()));
        break;
      case 'p':
        take_places(std::string(input.take_all()));
        break;
      case 'g':
        take_group(std::string(input.take_all()));
        break;
      case 's':
        take_size(std::string(input.take_all()));
        break;
      case 'k':
        take_costs(std::string(input.take_all()));
        break;
      case 'f':
        take_failure(std::string(input.take_all()));
        break;
      case 'w':
        take_awaited(input);
        break;
      case 't':
        take_tuning(std::string(input.take_all()));
        break;
      default:
        take_headers(input);
    }
  } catch (const Error& error) {
    require(error.code() == ErrorCode::kProtocol, "what cannot be read is a protocol's error");
  } catch (const std::invalid_argument& error) {
    require(kind == 't', "a table is refused in its own words");
  }
  return 0;
}
