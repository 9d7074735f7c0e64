// Serialization of p2p passes for worker processes.
#include <nlohmann/json.hpp>

#include "bench/measure/json_fields.h"
#include "bench/p2p/pass.h"

namespace kolo::bench {

std::string_view to_string(P2pKind kind) {
  switch (kind) {
    case P2pKind::kLatency:
      return "latency";
    case P2pKind::kBandwidth:
      return "bandwidth";
    case P2pKind::kBidirectional:
      return "bidirectional";
    case P2pKind::kMessageRate:
      return "message-rate";
  }
  return "?";
}

std::string to_text(const P2pPassRequest& turn) {
  return nlohmann::json{{"kind", static_cast<int>(turn.kind)},
                        {"bytes", turn.bytes},
                        {"window", turn.window},
                        {"warmup", turn.warmup},
                        {"samples", turn.samples},
                        {"seconds", turn.seconds},
                        {"is_checked", turn.is_checked},
                        {"salt", turn.salt}}
      .dump();
}

std::string to_text(const P2pPassResult& result) {
  return nlohmann::json{
      {"times_us", result.times_us}, {"wrong", result.wrong}, {"salt", result.salt}}
      .dump();
}

P2pPassRequest parse_p2p_pass_request(const std::string& text) {
  return read_json<P2pPassRequest>(text, "pass of two ranks", [](const nlohmann::json& read) {
    P2pPassRequest turn;
    turn.kind = enumerator(read, "kind", P2pKind::kMessageRate);
    turn.bytes = whole<std::size_t>(read, "bytes");
    turn.window = whole<std::size_t>(read, "window");
    turn.warmup = whole<int>(read, "warmup");
    turn.samples = whole<std::size_t>(read, "samples");
    turn.seconds = duration(read.at("seconds"));
    turn.is_checked = read.at("is_checked");
    turn.salt = whole<std::uint32_t>(read, "salt");
    return turn;
  });
}

P2pPassResult parse_p2p_pass_result(const std::string& text) {
  return read_json<P2pPassResult>(text, "result of a p2p pass", [](const nlohmann::json& read) {
    P2pPassResult result;
    result.times_us = durations(read.at("times_us"));
    result.wrong = whole<std::uint64_t>(read, "wrong");
    result.salt = whole<std::uint32_t>(read, "salt");
    return result;
  });
}

}  // namespace kolo::bench
