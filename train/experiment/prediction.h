// Predicted time of an iteration on a network of known rate and latency.
//
// Words. *Compute* is all of an iteration except exposed communication; it is measured. A rank's
// *bytes* are those of its strategy's formula, the larger of sent and received: a wire carries both
// directions at once. A *hop* is one message in a sequence of messages that wait for each other.
//
// Model. An exchange takes the bytes of the busiest rank at the rate of its wire, and one latency
// per hop. C is the time of all buckets. A communicator runs exchanges one after the other, so the
// hops of all buckets add up. Keys of key servers do not wait for each other, so only those of the
// last bucket count. The exposed part is
//
//   naive, flat   C
//   others        max(time of the last bucket, first bucket full + C - backward)
//   prioritized   the same, with the next forward added to backward
//   sharded       the same for the gradients, which are half of the bytes, then the parameters
//   local-sgd     C, spread over its local steps
//   dataparallel  rank 0's sending of parameters and batch, then as others with the gradients that
//                 rank 0 receives
//
// A synchronous iteration lasts as long as that of the slowest worker. Where servers apply
// gradients as they arrive, a worker waits for its own bytes only, but no iteration is shorter than
// the servers' work for all workers.
//
// Of several micro-batches only the last one hides communication.
//
// Not modelled: the ranks' own time for sending, copying and summing, cores that ranks share, and
// waits for a free slot at the receiver, which cost most with few buckets and a long latency.
#pragma once

#include <optional>
#include <string_view>

#include "train/experiment/run_record.h"
#include "train/strategies/arm.h"

namespace kolo::train {

struct Network {
  double bytes_per_second = 0;  // of each rank's wire, in each direction; 0: no limit
  double latency_seconds = 0;
};

// The network of a shape (transports/decorators/shape.h) that is the same between all ranks; the
// mean jitter counts as latency. Nothing if the text is empty, or pairs of ranks differ. Throws
// std::invalid_argument as parse_shape does.
std::optional<Network> network_of(std::string_view shape);

double exchange_seconds(const Network& network, double bytes, double hops);

struct PredictedIteration {
  double seconds = 0;
  double exposed = 0;  // the mean over workers
};

// `run`: with the measurements of all ranks.
PredictedIteration predict(const RunRecord& run, const Arm& arm, const Network& network);

}  // namespace kolo::train
