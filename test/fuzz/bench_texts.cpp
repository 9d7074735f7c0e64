// Fuzzer of the texts that kolo-bench and its worker processes exchange through their store. A text
// is parsed to possible values, or refused.
#include <cstdint>
#include <stdexcept>
#include <string>

#include "bench/measure/pass.h"
#include "bench/p2p/pass.h"
#include "bench/peers/worker_request.h"
#include "test/fuzz/input.h"

using namespace kolo;
using namespace kolo::bench;
using namespace kolo::fuzz;

namespace {

void require_known(const Problem& problem) {
  require(problem.collective <= Collective::kMessage && problem.type <= ElementType::kUint64 &&
              problem.op <= ReduceOp::kUser && problem.servers >= 0,
          "a turn is of something that there is");
}

void require_times(const std::vector<double>& times) {
  for (const double time : times) require(time >= 0, "no time is negative");
}

// Parses the text. Writing and parsing the result again must not change it.
template <typename Read>
auto take(const std::string& text, const Read& read) {
  const auto once = read(text);
  const std::string again = to_text(once);
  require(to_text(read(again)) == again, "what was read is written, and read, the same again");
  return once;
}

void take(char kind, const std::string& text) {
  switch (kind) {
    case 'o': {
      const WorkerRequest order = take(text, parse_worker_request);
      return require_known(order.turn.problem);
    }
    case 't':
      return require_known(take(text, parse_pass_request).problem);
    case 'r':
      return require_times(take(text, parse_pass_result).times_us);
    case 'g':
      return require(to_string(take(text, parse_p2p_pass_request).kind) != "?",
                     "a pass of messages has a kind");
    case 'a':
      return require_times(take(text, parse_p2p_pass_result).times_us);
    default:
      require(parse_port(text) != 0, "a port is none that the system chooses");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input input(data, size);
  const char kind = input.number<char>();
  try {
    take(kind, std::string(input.take_all()));
  } catch (const std::invalid_argument&) {
  }
  return 0;
}
