// Command line of kolo-conformance.
#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace kolo::inline v0::conformance {

struct Arguments {
  std::vector<std::string> transports;
  std::vector<std::string> left_out;  // transports of "all" that this machine cannot run, and why
  std::vector<std::string> clauses;   // texts of clauses; empty: all
  std::string markdown;               // a file with marks for the table; empty: none
  std::chrono::seconds limit{120};    // for one clause
  bool is_list = false;
  bool is_help = false;
  bool is_here = false;                // runs in this process, as the program calls itself
  bool is_probe = false;               // only prints what the transport offers
  std::vector<std::string> rank = {};  // arguments of one rank's process
};

// std::invalid_argument for an invalid command line.
Arguments parse(int argc, const char* const* argv);

std::string usage();

}  // namespace kolo::inline v0::conformance
