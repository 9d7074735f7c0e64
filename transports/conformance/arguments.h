// The command line of kolo-conformance.
#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace kolo::conformance {

struct Arguments {
  std::vector<std::string> transports;
  std::vector<std::string> left_out;  // of "all", what this machine cannot run, and why
  std::vector<std::string> clauses;   // texts; empty: all
  std::string markdown;               // a file with a place for the table; empty: none
  std::chrono::seconds limit{120};    // for one clause
  bool is_list = false;
  bool is_help = false;
  bool is_here = false;                // in this process: what the program calls itself with
  bool is_probe = false;               // says what the transport offers, and ends
  std::vector<std::string> rank = {};  // the words of one rank's process
};

// std::invalid_argument where they make no sense.
Arguments parse(int argc, const char* const* argv);

std::string usage();

}  // namespace kolo::conformance
