// Request of a rank to its worker process (worker_processes.h), serialized into the store.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "bench/measure/pass.h"
#include "bench/p2p/pass.h"

namespace kolo::bench {

// Keys in the store that ranks and workers share.
std::string request_key(int number, int rank);
std::string result_key(int number, int rank);
std::string hello_key(int rank);

// The value of request_key; an empty text ends the worker.
struct WorkerRequest {
  std::optional<P2pPassRequest>
      game;  // a p2p pass; none: a pass of a collective, with the fields below
  PassRequest turn;
  std::string data_path;
  std::size_t data_bytes = 0;
  std::string input_path;  // empty in place
  std::size_t input_bytes = 0;
};
std::string to_text(const WorkerRequest& order);
WorkerRequest parse_worker_request(
    const std::string& text);  // std::invalid_argument for texts that to_text did not write

// A port from 1 to 65535 in decimal digits; std::invalid_argument for other texts.
std::uint16_t parse_port(const std::string& text);

}  // namespace kolo::bench
