#include "bench/peers/worker_request.h"

#include <fmt/format.h>

#include <charconv>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "bench/measure/json_fields.h"

namespace kolo::bench {

std::string request_key(int number, int rank) { return fmt::format("turn/{}/{}", number, rank); }
std::string result_key(int number, int rank) { return fmt::format("result/{}/{}", number, rank); }
std::string hello_key(int rank) { return fmt::format("hello/{}", rank); }

std::string to_text(const WorkerRequest& order) {
  if (order.game) return nlohmann::json{{"game", to_text(*order.game)}}.dump();
  return nlohmann::json{{"turn", to_text(order.turn)},
                        {"data_path", order.data_path},
                        {"data_bytes", order.data_bytes},
                        {"input_path", order.input_path},
                        {"input_bytes", order.input_bytes}}
      .dump();
}

WorkerRequest parse_worker_request(const std::string& text) {
  return read_json<WorkerRequest>(text, "request for a worker", [](const nlohmann::json& read) {
    WorkerRequest order;
    if (read.contains("game")) {
      order.game = parse_p2p_pass_request(read.at("game"));
      return order;
    }
    order.turn = parse_pass_request(read.at("turn"));
    order.data_path = read.at("data_path");
    order.data_bytes = whole<std::size_t>(read, "data_bytes");
    order.input_path = read.at("input_path");
    order.input_bytes = whole<std::size_t>(read, "input_bytes");
    return order;
  });
}

std::uint16_t parse_port(const std::string& text) {
  std::uint16_t port = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, port);
  if (error != std::errc() || rest != end || port == 0)
    throw std::invalid_argument("no port: '" + text + "'");
  return port;
}

}  // namespace kolo::bench
