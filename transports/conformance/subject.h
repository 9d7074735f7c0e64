// A transport that is to be proved, and what it offers beyond the least.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "transports/registry.h"

namespace kolo::conformance {

// What a transport may offer or not; clauses about the rest are not for it.
struct Features {
  bool answers = false;
  bool sleep = false;      // it has a descriptor to wait on
  bool processes = false;  // its ranks may be processes of their own
};

struct Subject {
  std::string name;
  std::function<std::unique_ptr<Transport>(const TransportRequest& request)> make;

  // For clauses whose ranks are processes: what these call it (make_transport), and the command
  // that becomes one of them when the words of rank_process.h are added. Empty: threads alone.
  std::string known_as;
  std::vector<std::string> rank_command;

  std::string calls_itself;  // Transport::name(); empty: it is not checked
  Features offers;
};

// The one that make_transport knows by `name`: in this build, registered, or in a library.
// std::invalid_argument for another name, and for a library that is no transport.
Subject subject_named(const std::string& name, std::vector<std::string> rank_command);

// Two ranks meet and say what they have. Throws what keeps them from it.
Features probe(const Subject& subject);

}  // namespace kolo::conformance
