#include "collectives/planner/costs_text.h"

#include <fmt/format.h>

#include <sstream>

#include "transports/error.h"

namespace kolo::inline v0 {
namespace {

std::string to_text(const Link& link) {
  return fmt::format("{} {} {} {} {} {}", link.latency_us, link.send_us, link.receive_us,
                     link.next_us, link.send_us_per_byte, link.receive_us_per_byte);
}

std::istream& operator>>(std::istream& words, Link& link) {
  return words >> link.latency_us >> link.send_us >> link.receive_us >> link.next_us >>
         link.send_us_per_byte >> link.receive_us_per_byte;
}

}  // namespace

std::string to_text(const Costs& costs) {
  return fmt::format("{} {} {} {} {} {} {}", to_text(costs.local), to_text(costs.remote),
                     costs.overhead_us, costs.copy_us_per_byte, costs.reduce_us_per_byte,
                     costs.switch_us, costs.cores);
}

Costs costs_from(std::string_view text) {
  std::istringstream words{std::string(text)};
  words.exceptions(std::ios::badbit);  // throws if memory runs out; that is not the end of the text
  Costs costs;
  words >> costs.local >> costs.remote >> costs.overhead_us >> costs.copy_us_per_byte >>
      costs.reduce_us_per_byte >> costs.switch_us >> costs.cores;
  if (!words) {
    throw Error(ErrorCode::kProtocol, kNoPeer,
                "a rank published unreadable costs: does it run a different version of kolo?");
  }
  return costs;
}

}  // namespace kolo::inline v0
