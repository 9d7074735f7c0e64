// Gradient update: what happens to gradients before and after their exchange.
//
//   encode    float32 -> 16 bits, in the same memory, times the loss scale of float16
//   decode    the sums in 16 bits -> float32
//   prepare   checks for overflow, and clips, when all sums are there
//
// *Loss scale.* float16 has no values between 0 and 6e-8, and none above 65504. So gradients are
// multiplied by a power of two before they are converted. Backward is linear and runs in float32,
// so this equals scaling the loss, with the same bits. If a sum is not finite, the update is
// skipped and the scale is halved. After kGrowthInterval updates without overflow it is doubled.
// These rules and numbers are those of torch.amp.GradScaler (Micikevicius et al., "Mixed precision
// training", 2018).
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "collectives/buffer.h"
#include "collectives/element.h"
#include "train/strategies/gradient_options.h"

namespace kolo::train {

// What happened to the updates so far, and the state of the loss scale.
struct UpdateStatistics {
  std::int64_t clipped = 0;
  std::int64_t skipped = 0;       // overflow of float16
  double scale = 0;               // 0: no loss scale
  double waiting = 0;             // seconds in which prepare() waited for other ranks
  std::int64_t since_change = 0;  // updates since the scale last changed
};

// One object per rank, one thread at a time.
class GradientUpdate {
 public:
  static constexpr double kFirstScale = 65536;
  static constexpr double kLeastScale = 1.0 / 16384;
  static constexpr std::int64_t kGrowthInterval = 2000;

  explicit GradientUpdate(const GradientOptions& options);

  // Converts `gradients` in their own memory, and returns the buffer to exchange.
  Buffer encode(std::span<float> gradients) const;
  // Converts the sums back to float32. `gradients`: the memory passed to encode(), which now holds
  // the sums.
  void decode(std::span<float> gradients) const;
  // Type and size of an element as it is sent.
  ElementType type() const { return type_; }
  std::size_t element_bytes() const;

  // True with float16 or clipping: an update then needs the sums of all buckets.
  bool needs_all_sums() const;
  // `sums`: the summed gradients that this rank holds. `total` sums a number over the ranks that
  // hold different parts, so that all ranks decide the same. Clips `sums`. False: a sum is not
  // finite, so skip the update. Throws std::runtime_error if the scale cannot be halved: at
  // kLeastScale, or in a format without a loss scale.
  bool prepare(std::span<const std::span<float>> sums, const std::function<double(double)>& total);

  const UpdateStatistics& statistics() const { return statistics_; }
  // Skipped updates of this run and of the runs that it resumes.
  std::int64_t skipped_of_training() const { return skipped_before_ + statistics_.skipped; }
  // Goes on from an earlier run. `scale`: 0 if it had none. `skipped`: its skipped updates.
  void restore(double scale, std::int64_t since_change, std::int64_t skipped);

 private:
  bool is_narrow() const;
  void note_overflow();

  GradientFormat format_;
  double clip_norm_;
  ConvertKernel narrow_ = nullptr;
  ConvertKernel widen_ = nullptr;
  ElementType type_ = ElementType::kFloat32;
  UpdateStatistics statistics_;
  std::int64_t skipped_before_ = 0;  // by earlier runs of this training
};

}  // namespace kolo::train
