// Names, choices, costs and traffic of the C interface.
#include "collectives/c/kolo_statistics.h"

#include <cstring>

#include "collectives/c/handles.h"

namespace kolo::inline v0::c_interface {

namespace {

// Result of a function that returns a string: empty on a failure. `text` owns it.
template <typename Body>
const char* text_or_empty(const kolo_communicator* communicator, std::string& text,
                          const Body& body) {
  text.clear();
  counted(communicator, [&] { text = body(held(communicator)); });
  return text.c_str();
}

Collective collective_of(kolo_collective given) {
  if (given < KOLO_COLLECTIVE_ALL_REDUCE || given > KOLO_COLLECTIVE_MESSAGE)
    refuse_number(given, "kolo_collective, such as KOLO_COLLECTIVE_ALL_REDUCE");
  return static_cast<Collective>(given);
}

kolo_link_costs link_costs(const Link& link) {
  return {link.latency_us, link.send_us,          link.receive_us,
          link.next_us,    link.send_us_per_byte, link.receive_us_per_byte};
}

// Writes as much as the caller's struct has room for.
template <typename Struct>
void write_fields(Struct* into, Struct values, const char* name) {
  if (into == nullptr) refuse(std::string("the ") + name + " is null; the result is stored there");
  values.size = fields_of(into, name).size;
  std::memcpy(static_cast<void*>(into), &values, std::min(values.size, sizeof values));
}

}  // namespace

}  // namespace kolo::inline v0::c_interface

using namespace kolo;
using namespace kolo::c_interface;

int kolo_rank(const kolo_communicator* communicator) {
  int rank = KOLO_NO_PEER;
  counted(communicator, [&] { rank = held(communicator).rank(); });
  return rank;
}

int kolo_size(const kolo_communicator* communicator) {
  int size = 0;
  counted(communicator, [&] { size = held(communicator).size(); });
  return size;
}

const char* kolo_name(const kolo_communicator* communicator) {
  thread_local std::string text;
  return text_or_empty(communicator, text,
                       [](const Communicator& world) { return std::string(world.name()); });
}

const char* kolo_transport_name(const kolo_communicator* communicator) {
  thread_local std::string text;
  return text_or_empty(communicator, text,
                       [](const Communicator& world) { return std::string(world.transport()); });
}

const char* kolo_carrier(const kolo_communicator* communicator) {
  thread_local std::string text;
  return text_or_empty(communicator, text,
                       [](const Communicator& world) { return world.carrier(); });
}

int64_t kolo_timeout_ms(const kolo_communicator* communicator) {
  int64_t timeout_ms = 0;
  counted(communicator, [&] { timeout_ms = held(communicator).timeout().count(); });
  return timeout_ms;
}

kolo_result kolo_job_rank(const kolo_communicator* communicator, int rank, int* job_rank) {
  return counted(communicator, [&] {
    if (job_rank == nullptr) refuse("`job_rank` is null; the result is stored there");
    *job_rank = held(communicator).job_rank(rank);
  });
}

kolo_result kolo_hosts(const kolo_communicator* communicator, int* hosts) {
  return counted(communicator, [&] {
    if (hosts == nullptr) refuse("`hosts` is null; the result is stored there");
    const auto numbers = held(communicator).hosts();
    std::copy(numbers.begin(), numbers.end(), hosts);
  });
}

const char* kolo_algorithm_name(kolo_collective collective, size_t index) {
  thread_local std::string text;
  const char* name = nullptr;
  guarded(nullptr, [&] {
    const auto names = algorithm_names(collective_of(collective));
    if (index >= names.size()) return;
    text = names[index];
    name = text.c_str();
  });
  return name;
}

kolo_result kolo_predict(const kolo_communicator* communicator, kolo_collective collective,
                         size_t bytes, kolo_type type, kolo_op op, kolo_prediction* predictions,
                         size_t room, size_t* count) {
  thread_local std::vector<std::string> names;
  return counted(communicator, [&] {
    if (count == nullptr || (predictions == nullptr && room > 0))
      refuse("`predictions` or `count` is null: they get the result");
    const Elements elements(type, {});
    const auto made =
        held(communicator)
            .predict(collective_of(collective), bytes, elements.type, reduction(op, {}).op());
    names.clear();
    for (const Prediction& one : made) names.emplace_back(one.algorithm);
    for (size_t i = 0; i < std::min(room, made.size()); ++i) {
      predictions[i] = {names[i].c_str(), made[i].time_us, made[i].is_chosen ? 1 : 0,
                        made[i].is_by_table ? 1 : 0};
    }
    *count = made.size();
  });
}

kolo_result kolo_measured_costs(const kolo_communicator* communicator, kolo_costs* costs) {
  return counted(communicator, [&] {
    if (costs == nullptr) refuse("`costs` is null; the result is stored there");
    const Costs made = held(communicator).costs();
    *costs = {
        link_costs(made.local),  link_costs(made.remote), made.overhead_us, made.copy_us_per_byte,
        made.reduce_us_per_byte, made.switch_us,          made.cores};
  });
}

kolo_result kolo_get_statistics(const kolo_communicator* communicator,
                                kolo_statistics* statistics) {
  return counted(communicator, [&] {
    const CommunicatorStatistics made = held(communicator).statistics();
    write_fields(statistics,
                 {0, made.payload_bytes_sent, made.payload_bytes_received, made.header_bytes_sent,
                  made.bytes_sent_to_other_hosts, made.operations},
                 "kolo_statistics");
  });
}

kolo_result kolo_get_peer_statistics(const kolo_communicator* communicator, int peer,
                                     kolo_peer_statistics* statistics) {
  thread_local PeerStatistics made;  // owns the strings of the result
  return counted(communicator, [&] {
    made = held(communicator).peer_statistics(peer);
    const ChannelStatistics& channel = made.channel;
    const WaitStatistics& waits = made.waits;
    write_fields(statistics,
                 {0, channel.bytes_sent, channel.bytes_received, channel.segments_sent,
                  channel.segments_received, channel.system_calls, channel.connections, waits.waits,
                  waits.spins, waits.yields, waits.sleeps, waits.waited_ns, made.transport.c_str(),
                  made.address.c_str()},
                 "kolo_peer_statistics");
  });
}

kolo_result kolo_get_step_profile(const kolo_communicator* communicator, kolo_step_profile* rows,
                                  size_t room, size_t* count) {
  thread_local std::vector<std::string> kinds;
  return counted(communicator, [&] {
    if (count == nullptr || (rows == nullptr && room > 0))
      refuse("`rows` or `count` is null: they get the result");
    const auto made = held(communicator).step_profile();
    kinds.clear();
    for (const StepProfile& row : made) kinds.emplace_back(row.kind);
    for (size_t i = 0; i < std::min(room, made.size()); ++i) {
      rows[i] = {kinds[i].c_str(), made[i].steps, made[i].bytes, made[i].worked_us,
                 made[i].waited_us};
    }
    *count = made.size();
  });
}

kolo_result kolo_write_records(kolo_communicator* communicator) {
  return counted(communicator, [&] { held(communicator).write_records(); });
}
