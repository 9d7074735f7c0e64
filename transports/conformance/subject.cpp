#include "transports/conformance/subject.h"

#include <atomic>
#include <utility>

#include "transports/conformance/ranks.h"

namespace kolo::inline v0::conformance {

Subject subject_named(const std::string& name, std::vector<std::string> rank_command) {
  Subject subject;
  subject.name = resolve_transport(name);
  subject.make = [name = subject.name](const TransportRequest& request) {
    return make_transport(name, request);
  };
  subject.offers.processes = joins_processes(subject.name);
  if (subject.offers.processes) {
    subject.known_as = subject.name;
    subject.rank_command = std::move(rank_command);
  }
  return subject;
}

Features probe(const Subject& subject) {
  std::atomic<bool> answers{false};
  std::atomic<bool> sleeps{false};
  run_ranks(subject, 2, [&](Rank& rank) {
    if (rank.rank() != 0) return rank.meet("probed");
    answers = rank.to(1).capabilities().can_answer;
    sleeps = rank.transport().descriptor() >= 0;
    rank.meet("probed");
  });
  Features offers = subject.offers;
  offers.answers = answers;
  offers.sleep = sleeps;
  return offers;
}

}  // namespace kolo::inline v0::conformance
