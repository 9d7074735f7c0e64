// Statistics, algorithms and predictions.
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <algorithm>

#include "collectives/python/src/module.h"

namespace kolo::python {

namespace {

using namespace nb::literals;
using SharedWorld = std::shared_ptr<World>;

constexpr Collective kNamed[] = {
    Collective::kAllReduce, Collective::kReduceScatter, Collective::kAllGather,
    Collective::kBroadcast, Collective::kBarrier,       Collective::kPushPull,
    Collective::kPush,      Collective::kPull,          Collective::kReduce,
    Collective::kGather,    Collective::kScatter,       Collective::kAllToAll,
    Collective::kScan,      Collective::kExclusiveScan};

Collective collective_of(const std::string& name) {
  std::string names;
  for (const Collective one : kNamed) {
    if (to_string(one) == name) return one;
    names += (names.empty() ? "" : ", ") + std::string(to_string(one));
  }
  throw std::invalid_argument("unknown collective '" + name + "'; expected one of " + names);
}

nb::dict traffic(const ChannelStatistics& channel) {
  nb::dict made;
  made["bytes_sent"] = channel.bytes_sent;
  made["bytes_received"] = channel.bytes_received;
  made["segments_sent"] = channel.segments_sent;
  made["segments_received"] = channel.segments_received;
  made["system_calls"] = channel.system_calls;
  made["connections"] = channel.connections;
  return made;
}

nb::dict statistics(const SharedWorld& self) {
  const CommunicatorStatistics counted =
      ask(self, [](Communicator& world) { return world.statistics(); });
  nb::dict made;
  made["payload_bytes_sent"] = counted.payload_bytes_sent;
  made["payload_bytes_received"] = counted.payload_bytes_received;
  made["header_bytes_sent"] = counted.header_bytes_sent;
  made["bytes_sent_to_other_hosts"] = counted.bytes_sent_to_other_hosts;
  made["operations"] = counted.operations;
  return made;
}

nb::dict peer_statistics(const SharedWorld& self, int peer) {
  const PeerStatistics counted =
      ask(self, [&](Communicator& world) { return world.peer_statistics(peer); });
  nb::dict made = traffic(counted.channel);
  made["waits"] = counted.waits.waits;
  made["sleeps"] = counted.waits.sleeps;
  made["waited_seconds"] = static_cast<double>(counted.waits.waited_ns) * 1e-9;
  made["transport"] = counted.transport;
  made["address"] = counted.address;
  return made;
}

nb::list step_profile(const SharedWorld& self) {
  nb::list made;
  const auto steps = ask(self, [](Communicator& world) { return world.step_profile(); });
  for (const StepProfile& step : steps) {
    nb::dict row;
    row["kind"] = std::string(step.kind);
    row["steps"] = step.steps;
    row["bytes"] = step.bytes;
    row["worked_us"] = step.worked_us;
    row["waited_us"] = step.waited_us;
    made.append(row);
  }
  return made;
}

std::string algorithm(const SharedWorld& self, const std::string& collective, std::size_t bytes,
                      const std::string& dtype, ReduceOp op) {
  const Collective wanted = collective_of(collective);
  const ElementType type = element_type(dtype);
  return ask(self, [&](Communicator& world) {
    return std::string(world.algorithm(wanted, bytes, type, op));
  });
}

nb::dict predict(const SharedWorld& self, const std::string& collective, std::size_t bytes,
                 const std::string& dtype, ReduceOp op) {
  const Collective wanted = collective_of(collective);
  const ElementType type = element_type(dtype);
  const auto candidates =
      ask(self, [&](Communicator& world) { return world.predict(wanted, bytes, type, op); });
  nb::dict made;
  for (const Prediction& one : candidates) {
    made[std::string(one.algorithm).c_str()] = one.time_us;
  }
  return made;
}

}  // namespace

void bind_statistics(nb::module_& module, WorldClass& world) {
  world.def("statistics", statistics)
      .def("peer_statistics", peer_statistics)
      .def("step_profile", step_profile)
      .def("algorithm", algorithm)
      .def("predict", predict)
      .def("write_records", [](const SharedWorld& self) {
        ask(self, [](Communicator& one) { one.write_records(); });
      });
  module.def(
      "algorithm_names",
      [](const std::string& collective) {
        const auto names = algorithm_names(collective_of(collective));
        return std::vector<std::string>(names.begin(), names.end());
      },
      "collective"_a, "Names of the algorithms of a collective, such as \"all_reduce\".");
}

}  // namespace kolo::python
