#include "bench/commands/topology.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <nlohmann/json.hpp>
#include <ostream>
#include <span>
#include <tuple>

#include "bench/measure/cores.h"
#include "bench/measure/statistics.h"
#include "bench/output/run_info.h"

namespace kolo::bench {
namespace {

using Microseconds = std::chrono::duration<double, std::micro>;

constexpr std::size_t kWarmUps = 10;
constexpr std::size_t kMostRoundTrips = 500;
constexpr std::size_t kLeastRoundTrips = 3;
constexpr double kRoundTripsTake_us = 20'000;  // then no more
constexpr std::size_t kFirstStream = 64 << 10;
constexpr std::size_t kLongestStream = std::size_t{64} << 20;
constexpr std::size_t kMessage = 1 << 20;
constexpr double kStreamTakes_us = 5'000;    // a shorter one is repeated with twice the bytes
constexpr double kLatencies = 10;            // the same in latencies of the pair
constexpr std::size_t kStreams = 5;          // that are long enough
constexpr double kStreamsTake_us = 200'000;  // then no more

// What a rank of a pair sends to rank 0, as plain bytes.
struct Measured {
  double latency_us = 0;
  double bandwidth_GBps = 0;
  std::array<char, 32> transport{};
  std::array<char, 64> address{};
};

template <typename Value>
std::span<Value> one(Value& value) {
  return {&value, 1};
}

template <std::size_t kRoom>
void copy_text(const std::string& text, std::array<char, kRoom>& into) {
  text.copy(into.data(), kRoom - 1);
}

// One end of a pair. The lower rank decides how much is measured, and says so in each message.
class PairEnd {
 public:
  PairEnd(Communicator& communicator, int peer)
      : communicator_(communicator), peer_(peer), is_first_(communicator.rank() < peer) {}

  double latency_us() {
    std::vector<double> times;
    double total_us = 0;
    std::uint64_t has_more = 1;
    for (std::size_t i = 0; has_more != 0; ++i) {
      const bool is_enough = i >= kWarmUps + kMostRoundTrips ||
                             (times.size() >= kLeastRoundTrips && total_us > kRoundTripsTake_us);
      has_more = is_enough ? 0 : 1;
      const auto begin = Clock::now();
      round_trip(has_more);
      if (!is_first_) continue;
      // A slow network has no time for warm-ups.
      const double took_us = Microseconds(Clock::now() - begin).count();
      total_us += took_us;
      if (i >= kWarmUps || took_us > kRoundTripsTake_us / kWarmUps) times.push_back(took_us / 2);
    }
    return is_first_ ? quantile(times, 0.5) : 0;
  }

  double bandwidth_GBps(double latency_us) {
    std::vector<double> rates;  // of streams that were long enough
    double total_us = 0;
    std::uint64_t bytes = kFirstStream;
    while (true) {
      round_trip(bytes);
      if (bytes == 0) return is_first_ ? quantile(rates, 0.5) : 0;
      const double took_us = stream(bytes);
      if (!is_first_) continue;
      total_us += took_us;
      const bool is_long =
          took_us > std::max(kStreamTakes_us, kLatencies * latency_us) || bytes >= kLongestStream;
      // The acknowledgement takes a latency; a disturbed one must not make the rate infinite.
      const double own_us = std::max(took_us - latency_us, took_us / 2);
      if (is_long) rates.push_back(static_cast<double>(bytes) * 1e-3 / own_us);
      const bool is_enough = !rates.empty() && total_us > kStreamsTake_us;
      if (!is_long) bytes *= 2;
      if (rates.size() == kStreams || is_enough) bytes = 0;
    }
  }

 private:
  // `value` goes to the second rank and comes back.
  void round_trip(std::uint64_t& value) {
    if (is_first_) communicator_.send(one(value), peer_);
    communicator_.receive(one(value), peer_);
    if (!is_first_) communicator_.send(one(value), peer_);
  }

  // Microseconds until the last byte was received and acknowledged, on the first rank.
  double stream(std::uint64_t bytes) {
    data_.resize(std::min<std::size_t>(kMessage, bytes));
    const auto begin = Clock::now();
    for (std::uint64_t done = 0; done < bytes; done += data_.size())
      is_first_ ? communicator_.send(data_, peer_) : communicator_.receive(data_, peer_);
    std::uint64_t word = 0;
    if (is_first_) {
      communicator_.receive(one(word), peer_);
    } else {
      communicator_.send(one(word), peer_);
    }
    return Microseconds(Clock::now() - begin).count();
  }

  Communicator& communicator_;
  const int peer_;
  const bool is_first_;
  std::vector<std::byte> data_;
};

Measured measure(Communicator& communicator, int peer) {
  PairEnd end(communicator, peer);
  Measured result;
  result.latency_us = end.latency_us();
  result.bandwidth_GBps = end.bandwidth_GBps(result.latency_us);
  const PeerStatistics statistics = communicator.peer_statistics(peer);
  copy_text(statistics.transport, result.transport);
  copy_text(statistics.address, result.address);
  return result;
}

// Three digits: links differ by orders of magnitude.
std::string rate_text(const PairRow& row) { return fmt::format("{:.3g}", row.bandwidth_GBps); }

std::string link_text(const PairRow& row) {
  return fmt::format("{}{}{}{}", row.transport, row.address.empty() ? "" : " (", row.address,
                     row.address.empty() ? "" : ")");
}

}  // namespace

std::string json_line(const PairRow& row, int size) {
  nlohmann::ordered_json line;
  line["collective"] = "topology";
  line["ranks"] = size;
  line["from"] = row.ranks[0];
  line["to"] = row.ranks[1];
  line["hosts"] = row.hosts;
  line["transport"] = row.transport;
  line["address"] = row.address;
  line["latency_us"] = row.latency_us;
  line["bandwidth_GBps"] = row.bandwidth_GBps;
  line["run"] = run_info();
  return line.dump();
}

const PairRow* slowest(const std::vector<PairRow>& rows) {
  const auto found = std::ranges::min_element(
      rows, {}, [](const PairRow& row) { return std::tuple(row.bandwidth_GBps, -row.latency_us); });
  return found == rows.end() ? nullptr : &*found;
}

std::vector<std::string> table_lines(const std::vector<PairRow>& rows) {
  std::vector<std::string> lines = {fmt::format("#{:>5} {:>5} {:>9} {:>10} {:>10} {:>9}  {}",
                                                "from", "to", "hosts", "over", "latency", "GB/s",
                                                "address")};
  for (const PairRow& row : rows) {
    lines.push_back(fmt::format(" {:>5} {:>5} {:>9} {:>10} {:>10} {:>9}  {}", row.ranks[0],
                                row.ranks[1], fmt::format("{} {}", row.hosts[0], row.hosts[1]),
                                row.transport, time_text(row.latency_us), rate_text(row),
                                row.address.empty() ? "-" : row.address));
  }
  if (const PairRow* row = slowest(rows)) {
    lines.push_back(fmt::format("# the slowest link: ranks {} and {} over {}, {} us, {} GB/s",
                                row->ranks[0], row->ranks[1], link_text(*row),
                                time_text(row->latency_us), rate_text(*row)));
  }
  return lines;
}

std::vector<PairRow> measure_topology(Communicator& communicator) {
  const int rank = communicator.rank();
  const auto hosts = communicator.hosts();
  std::vector<PairRow> rows;
  for (int lower = 0; lower < communicator.size(); ++lower) {
    for (int higher = lower + 1; higher < communicator.size(); ++higher) {
      communicator.barrier();
      Measured measured;
      if (rank == lower) measured = measure(communicator, higher);
      if (rank == higher) measure(communicator, lower);
      if (lower != 0 && rank == lower) communicator.send(std::as_bytes(one(measured)), 0);
      if (rank != 0) continue;
      if (lower != 0) communicator.receive(std::as_writable_bytes(one(measured)), lower);
      PairRow row;
      row.ranks[0] = lower;
      row.ranks[1] = higher;
      for (const int i : {0, 1}) row.hosts[i] = hosts[static_cast<std::size_t>(row.ranks[i])];
      row.latency_us = measured.latency_us;
      row.bandwidth_GBps = measured.bandwidth_GBps;
      row.transport = measured.transport.data();
      row.address = measured.address.data();
      rows.push_back(std::move(row));
    }
  }
  return rows;
}

void run_topology(Communicator& communicator, const Arguments& arguments, std::ostream& table,
                  JsonLines& json) {
  if (communicator.rank() == 0) {
    table << fmt::format(
        "# kolo-bench topology: {}\n# {}\n# {}\n",
        ranks_text(arguments.ranks, communicator.transport(), communicator.carrier()),
        describe_machine(), own_version());
    flush_or_throw(table, kTable);
  }
  const std::vector<PairRow> rows = measure_topology(communicator);
  if (communicator.rank() != 0) return;
  for (const std::string& line : table_lines(rows)) table << line << '\n';
  table << "# latency: half the round trip of 8 bytes in us, median; GB/s: one direction\n";
  flush_or_throw(table, kTable);
  for (const PairRow& row : rows) json.add(json_line(row, communicator.size()));
}

}  // namespace kolo::bench
