// What a rank puts into the store for the process beside it (elsewhere.h), as text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "bench/measure/pass.h"
#include "bench/p2p/pass.h"

namespace kolo::bench {

// Of a store of theirs: what the ranks and the processes call what they put there.
std::string request_key(int number, int rank);
std::string result_key(int number, int rank);
std::string hello_key(int rank);

// What a process finds under request_key: empty text where there is no more to do.
struct WorkerRequest {
  std::optional<P2pPassRequest>
      game;  // of two ranks; none: a turn of a collective, with all that follows
  PassRequest turn;
  std::string data_path;
  std::size_t data_bytes = 0;
  std::string input_path;  // empty in place
  std::size_t input_bytes = 0;
};
std::string to_text(const WorkerRequest& order);
WorkerRequest parse_worker_request(
    const std::string& text);  // std::invalid_argument where to_text did not write it

// From 1 to 65535, as decimal digits; std::invalid_argument where the text is nothing of the kind.
std::uint16_t parse_port(const std::string& text);

}  // namespace kolo::bench
