#include "bench/turn.h"

#include <nlohmann/json.hpp>
#include <stdexcept>

namespace kolo::bench {
namespace {

template <typename Value, typename Take>
Value parse(const std::string& text, const Take& take) {
  try {
    return take(nlohmann::json::parse(text));
  } catch (const nlohmann::json::exception& error) {
    throw std::invalid_argument(std::string("no turn of a benchmark: ") + error.what());
  }
}

}  // namespace

std::string to_text(const Turn& turn) {
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

std::string to_text(const TurnResult& result) {
  return nlohmann::json{{"first_us", result.first_us},
                        {"times_us", result.times_us},
                        {"wrong", result.wrong},
                        {"iteration", result.iteration}}
      .dump();
}

Turn parse_turn(const std::string& text) {
  return parse<Turn>(text, [](const nlohmann::json& read) {
    Turn turn;
    turn.problem.collective = static_cast<Collective>(read.at("collective").get<int>());
    turn.problem.type = static_cast<ElementType>(read.at("type").get<int>());
    turn.problem.op = static_cast<ReduceOp>(read.at("op").get<int>());
    turn.problem.is_in_place = read.at("is_in_place");
    turn.problem.servers = read.at("servers");
    turn.problem.count = read.at("count");
    turn.warmup = read.at("warmup");
    turn.iterations = read.at("iterations");
    turn.seconds = read.at("seconds");
    turn.is_checked = read.at("is_checked");
    turn.checks_waiting = read.at("checks_waiting");
    turn.iteration = read.at("iteration");
    return turn;
  });
}

TurnResult parse_turn_result(const std::string& text) {
  return parse<TurnResult>(text, [](const nlohmann::json& read) {
    TurnResult result;
    result.first_us = read.at("first_us");
    result.times_us = read.at("times_us").get<std::vector<double>>();
    result.wrong = read.at("wrong");
    result.iteration = read.at("iteration");
    return result;
  });
}

}  // namespace kolo::bench
