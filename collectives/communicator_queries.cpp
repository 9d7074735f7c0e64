// Queries of a communicator: ranks, names, predictions, statistics.
#include <fmt/format.h>

#include "collectives/algorithms/algorithm_table.h"
#include "collectives/engine/communicator_state.h"
#include "transports/base/check.h"

namespace kolo::inline v0 {

int Communicator::rank() const { return state().rank(); }
int Communicator::size() const { return state().size(); }
std::string_view Communicator::name() const { return state().options().name; }
std::chrono::milliseconds Communicator::timeout() const { return state().options().timeout; }
int Communicator::job_rank(int rank) const {
  check(rank >= 0 && rank < size(),
        fmt::format("job_rank: rank {} is not a rank; expected 0 to {}", rank, size() - 1));
  return state().job_rank(rank);
}
std::string_view Communicator::transport() const { return state().transport().name(); }
std::string Communicator::carrier() const { return state().transport().carrier(); }
std::span<const int> Communicator::hosts() const { return state().hosts(); }
std::string_view Communicator::algorithm(Collective collective, std::size_t bytes, ElementType type,
                                         ReduceOp op) const {
  checked_calls::require_plannable(collective, bytes, type, op);
  return algorithm_name(state().choose(collective, bytes, type, op));
}
std::vector<Prediction> Communicator::predict(Collective collective, std::size_t bytes,
                                              ElementType type, ReduceOp op) const {
  checked_calls::require_plannable(collective, bytes, type, op);
  return state().predict(collective, bytes, type, op);
}
Costs Communicator::costs() const { return state().costs(); }

std::optional<Error> Communicator::failure() const { return state().failure(); }

CommunicatorStatistics Communicator::statistics() const { return state().statistics(); }
PeerStatistics Communicator::peer_statistics(int peer) const {
  return state().peer_statistics(peer);
}
std::vector<StepProfile> Communicator::step_profile() const { return state().step_profile(); }
void Communicator::write_records() { state().write_records(); }

}  // namespace kolo::inline v0
