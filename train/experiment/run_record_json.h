// JSON conversion of run records, for files that use the JSON library. Other files include
// run_record.h.
#pragma once

#include <limits>
#include <nlohmann/json.hpp>

#include "train/experiment/run_record.h"

namespace kolo::train {

// JSON has no NaN: such a test loss is null.
inline void to_json(nlohmann::json& json, const EpochRecord& epoch) {
  json = {{"epoch", epoch.epoch},
          {"iterations", epoch.iterations},
          {"train_loss", epoch.train_loss},
          {"train_accuracy", epoch.train_accuracy},
          {"is_evaluated", epoch.is_evaluated},
          {"test_loss", epoch.test_loss},
          {"test_accuracy", epoch.test_accuracy},
          {"test_note", epoch.test_note},
          {"training_seconds", epoch.training_seconds},
          {"learning_rate", epoch.learning_rate}};
}
inline void from_json(const nlohmann::json& json, EpochRecord& epoch) {
  json.at("epoch").get_to(epoch.epoch);
  json.at("iterations").get_to(epoch.iterations);
  json.at("train_loss").get_to(epoch.train_loss);
  json.at("train_accuracy").get_to(epoch.train_accuracy);
  json.at("is_evaluated").get_to(epoch.is_evaluated);
  const nlohmann::json& loss = json.at("test_loss");
  epoch.test_loss = loss.is_null() ? std::numeric_limits<double>::quiet_NaN() : loss.get<double>();
  json.at("test_accuracy").get_to(epoch.test_accuracy);
  json.at("test_note").get_to(epoch.test_note);
  json.at("training_seconds").get_to(epoch.training_seconds);
  json.at("learning_rate").get_to(epoch.learning_rate);
}
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(UnfinishedRun, arm, seed, epochs)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(RankRecord, rank, is_worker, images_per_second, step_seconds,
                                   parts, forward_median, exposed_in_backward, in_flight,
                                   waiting_for_stages, bytes_sent, bytes_received, formula_sent,
                                   formula_received, first_full, hops, last_bytes, last_hops,
                                   busy_cores, peak_mib, optimizer_mib)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(LayerRecord, name, kind, forward, backward, flops)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(TimelineEvent, rank, bucket, name, begin, seconds)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(RunRecord, arm, program, seed, formula, difference, terms,
                                   transport, workers, servers, stages, micro_batches, classes,
                                   allowed_byte_difference, counted_iterations, epochs, ranks,
                                   step_seconds, step_losses, layers, timeline, staleness,
                                   gradients_applied, gradients_dropped, updates_clipped,
                                   updates_skipped, final_hash, replica_checks, training_seconds,
                                   evaluation_seconds, checking_seconds, total_seconds,
                                   predicted_step_seconds, predicted_exposed)

}  // namespace kolo::train
