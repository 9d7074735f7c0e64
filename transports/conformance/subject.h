// A transport to be tested, and its optional features.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "transports/registry.h"

namespace kolo::inline v0::conformance {

// Optional features; clauses about a missing feature are skipped.
struct Features {
  bool answers = false;
  bool sleep = false;      // it has a descriptor to wait on
  bool processes = false;  // its ranks may be separate processes
};

struct Subject {
  std::string name;
  std::function<std::unique_ptr<Transport>(const TransportRequest& request)> make;

  // For clauses with ranks as processes: the transport's name for make_transport, and the command
  // that runs such a rank when the arguments of rank_process.h are added. Empty: threads only.
  std::string known_as;
  std::vector<std::string> rank_command;

  std::string calls_itself;  // expected Transport::name(); empty: not checked
  Features offers;
};

// The transport that make_transport finds by `name`: built in, registered, or in a library.
// std::invalid_argument for an unknown name, and for a library without a transport.
Subject subject_named(const std::string& name, std::vector<std::string> rank_command);

// Creates the transport on two ranks and returns its features. Throws if that fails.
Features probe(const Subject& subject);

}  // namespace kolo::inline v0::conformance
