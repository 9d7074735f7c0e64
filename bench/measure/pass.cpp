#include "bench/measure/pass.h"

#include <nlohmann/json.hpp>

#include "bench/measure/json_fields.h"

namespace kolo::bench {
std::string to_text(const PassRequest& turn) {
  return nlohmann::json{{"collective", static_cast<int>(turn.problem.collective)},
                        {"type", static_cast<int>(turn.problem.type)},
                        {"op", static_cast<int>(turn.problem.op)},
                        {"is_in_place", turn.problem.is_in_place},
                        {"servers", turn.problem.servers},
                        {"count", turn.problem.count},
                        {"warmup", turn.warmup},
                        {"iterations", turn.iterations},
                        {"seconds", turn.seconds},
                        {"is_checked", turn.is_checked},
                        {"checks_waiting", turn.checks_waiting},
                        {"iteration", turn.iteration}}
      .dump();
}

std::string to_text(const PassResult& result) {
  return nlohmann::json{{"first_us", result.first_us},
                        {"times_us", result.times_us},
                        {"wrong", result.wrong},
                        {"iteration", result.iteration}}
      .dump();
}

PassRequest parse_pass_request(const std::string& text) {
  return read_json<PassRequest>(text, "pass of a benchmark", [](const nlohmann::json& read) {
    PassRequest turn;
    turn.problem.collective = enumerator(read, "collective", Collective::kMessage);
    turn.problem.type = enumerator(read, "type", ElementType::kUint64);
    turn.problem.op = enumerator(read, "op", ReduceOp::kUser);
    turn.problem.is_in_place = read.at("is_in_place");
    turn.problem.servers = whole<int>(read, "servers");
    turn.problem.count = whole<std::size_t>(read, "count");
    turn.warmup = whole<int>(read, "warmup");
    turn.iterations = whole<std::size_t>(read, "iterations");
    turn.seconds = duration(read.at("seconds"));
    turn.is_checked = read.at("is_checked");
    turn.checks_waiting = read.at("checks_waiting");
    turn.iteration = whole<std::uint32_t>(read, "iteration");
    return turn;
  });
}

PassResult parse_pass_result(const std::string& text) {
  return read_json<PassResult>(text, "result of a pass", [](const nlohmann::json& read) {
    PassResult result;
    result.first_us = duration(read.at("first_us"));
    result.times_us = durations(read.at("times_us"));
    result.wrong = whole<std::uint64_t>(read, "wrong");
    result.iteration = whole<std::uint32_t>(read, "iteration");
    return result;
  });
}

}  // namespace kolo::bench
