// JSON conversion of run records, for files that use the JSON library. Other files include
// run_record.h.
#pragma once

#include <nlohmann/json.hpp>

#include "train/experiment/run_record.h"

namespace kolo::train {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(EpochRecord, epoch, iterations, train_loss, train_accuracy,
                                   is_evaluated, test_loss, test_accuracy, training_seconds,
                                   learning_rate)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(RankRecord, rank, is_worker, images_per_second, step_seconds,
                                   parts, forward_median, exposed_in_backward, in_flight,
                                   bytes_sent, bytes_received, formula_sent, formula_received,
                                   first_full, hops, last_bytes, last_hops, busy_cores, peak_mib)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(RunRecord, arm, seed, formula, difference, terms, transport,
                                   workers, servers, allowed_byte_difference, counted_iterations,
                                   epochs, ranks, step_seconds, step_losses, staleness,
                                   gradients_applied, gradients_dropped, final_hash, replica_checks,
                                   training_seconds, evaluation_seconds, checking_seconds,
                                   total_seconds, predicted_step_seconds, predicted_exposed)

}  // namespace kolo::train
