#include "train/experiment/option_consistency.h"

#include <fmt/format.h>

#include <bit>
#include <stdexcept>

#include "train/loop/gather.h"
#include "train/loop/hash.h"

namespace kolo::train {
namespace {

std::int64_t mark_of(const std::string& text) {
  std::uint64_t mark = text.size();
  for (const char letter : text) mark = mix(mark ^ static_cast<unsigned char>(letter));
  return std::bit_cast<std::int64_t>(mark);
}

// Without the folder of files, which may differ between hosts.
std::string kind_of_data(const std::string& dataset) {
  if (dataset.starts_with("synthetic")) return dataset;
  return dataset.substr(0, dataset.find(':'));
}

}  // namespace

Flags flags_of(const Options& o) {
  return {
      {"--strategies", o.arms.front().name()},
      {"--ranks", fmt::format("{}", o.ranks)},
      {"--dataset", kind_of_data(o.dataset)},
      {"--train-size", fmt::format("{}", o.train_size)},
      {"--test-size", fmt::format("{}", o.test_size)},
      {"--image-size", fmt::format("{}", o.image_size)},
      {"--augment", o.augment},
      {"--model", o.model},
      {"--stem", o.stem},
      {"--batch-size or --global-batch", fmt::format("{}", o.samples_per_iteration())},
      {"--steps", fmt::format("{}", o.steps)},
      {"--epochs", fmt::format("{}", o.epochs)},
      {"--seed", fmt::format("{}", o.seed)},
      {"--lr", fmt::format("{}", o.lr)},
      {"--optimizer", o.optimizer},
      {"--nesterov", o.has_nesterov ? "yes" : "no"},
      {"--label-smoothing", fmt::format("{}", o.label_smoothing)},
      {"--momentum", fmt::format("{}", o.momentum)},
      {"--weight-decay", fmt::format("{}", o.weight_decay)},
      {"--warmup-epochs", fmt::format("{}", o.warmup_epochs)},
      {"--lr-schedule", o.lr_schedule},
      {"--lr-step-epochs", fmt::format("{}", o.lr_step_epochs)},
      {"--lr-step-factor", fmt::format("{}", o.lr_step_factor)},
      {"--lr-power", fmt::format("{}", o.lr_power)},
      {"--micro-batch", fmt::format("{}", o.micro_batch)},
      {"--compress", format_text(o.gradients)},
      {"--clip-norm", fmt::format("{}", o.gradients.clip_norm)},
      {"--sync-batch-norm", o.has_sync_batch_norm ? "yes" : "no"},
      {"--backend", o.backend},
      {"--precision", o.precision},
      {"--reproducibility", std::string(to_string(o.reproducibility))},
      {"--bucket-bytes", fmt::format("{}", o.bucket_bytes)},
      {"--first-bucket-bytes", fmt::format("{}", o.first_bucket_bytes)},
      {"--straggle", o.straggle.text()},
      {"--eval-every", fmt::format("{}", o.eval_every)},
      {"--save", o.save.empty() ? "no" : "yes"},
      {"--save-every", fmt::format("{}", o.save_every)},
      {"--resume", o.resume.empty() ? "no" : "yes"},
      {"--load", o.load.empty() ? "no" : "yes"},
      {"--timeline", o.has_timeline ? "yes" : "no"},
      {"--hash-every", fmt::format("{}", o.hash_every)},
  };
}

void require_equal_options(const Options& options, Communicator& communicator) {
  const Flags flags = flags_of(options);
  std::vector<std::int64_t> marks;
  for (const auto& flag : flags) marks.push_back(mark_of(flag.second));
  const auto rows = gather_rows(communicator, std::span<const std::int64_t>(marks));
  for (std::size_t i = 0; i < flags.size(); ++i) {
    for (std::size_t rank = 1; rank < rows.size(); ++rank) {
      if (rows[rank][i] == rows[0][i]) continue;
      throw std::runtime_error(fmt::format(
          "rank {} was given a different {} than rank 0 (rank {} has {}): start all ranks "
          "with the same options",
          rank, flags[i].first, communicator.rank(), flags[i].second));
    }
  }
}

}  // namespace kolo::train
