#include "train/checkpoint/optimizer_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <string>

namespace kolo::train {
namespace {

// Visits the values of array `index` of each optimizer, and the same part of the arena.
template <typename Arena, typename Visit>
void for_each_part(std::span<Optimizer* const> optimizers, std::size_t index, Arena& arena,
                   Visit visit) {
  for (Optimizer* const optimizer : optimizers) {
    const std::span<float> values = optimizer->state()[index].values;
    visit(values,
          std::span(arena).subspan(static_cast<std::size_t>(optimizer->offset()), values.size()));
  }
}

bool is_whole_at_rank_zero(const Arm& arm) {
  return arm.update_at == UpdateAt::worker && arm.local_steps == 0;
}

}  // namespace

std::string name_at(const std::string& name, int worker) {
  return worker == 0 ? name : fmt::format("rank{}.{}", worker, name);
}

void collect_bits(Communicator& communicator, std::span<std::int32_t> bits, const std::string& name,
                  ArenaState& state) {
  communicator.reduce(bits);
  if (communicator.rank() != 0) return;
  std::vector<float>& arena = state[name];
  arena.resize(bits.size());
  std::ranges::transform(bits, arena.begin(),
                         [](std::int32_t value) { return std::bit_cast<float>(value); });
}

std::vector<std::string> states_of(const OptimizerSettings& settings) {
  std::vector<std::string> names;
  for (const OptimizerState& one : make_optimizer(settings, 0, 0, {})->state())
    names.emplace_back(one.name);
  return names;
}

void set_state(const OptimizerSettings& settings, std::span<Optimizer* const> optimizers,
               const ArenaState& state) {
  const std::vector<std::string> names = states_of(settings);
  for (std::size_t i = 0; i < names.size(); ++i) {
    for_each_part(optimizers, i, state.at(names[i]),
                  [](auto to, auto from) { std::ranges::copy(from, to.begin()); });
  }
}

ArenaState collect_state(Communicator& communicator, const Arm& arm, int workers,
                         const OptimizerSettings& settings, std::span<Optimizer* const> optimizers,
                         std::size_t elements) {
  ArenaState state;
  const std::vector<std::string> names = states_of(settings);
  const bool is_root = communicator.rank() == 0;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (is_whole_at_rank_zero(arm)) {
      if (!is_root && arm.stages == 0) continue;
      std::vector<float>& arena = state[names[i]];
      arena.resize(elements);
      for_each_part(optimizers, i, arena,
                    [](auto from, auto to) { std::ranges::copy(from, to.begin()); });
      continue;
    }
    const int owners = arm.local_steps > 0 ? workers : 1;
    for (int owner = 0; owner < owners; ++owner) {
      std::vector<std::int32_t> bits(elements);
      if (owners == 1 || owner == communicator.rank()) {
        for_each_part(optimizers, i, bits, [](auto from, auto to) {
          std::ranges::transform(from, to.begin(),
                                 [](float value) { return std::bit_cast<std::int32_t>(value); });
        });
      }
      collect_bits(communicator, bits, name_at(names[i], owner), state);
    }
  }
  return state;
}

void distribute_state(Communicator& communicator, const Arm& arm, int workers,
                      const OptimizerSettings& settings, std::span<Optimizer* const> optimizers,
                      std::size_t elements, const ArenaState& state) {
  const std::vector<std::string> names = states_of(settings);
  std::int32_t saved = 1;  // workers with a state of their own
  while (state.contains(name_at(names.front(), saved))) ++saved;
  communicator.broadcast(std::span<std::int32_t>(&saved, 1));
  const int owners = arm.local_steps > 0 ? std::min(saved, workers) : 1;
  for (std::size_t i = 0; i < names.size(); ++i) {
    for (int owner = 0; owner < owners; ++owner) {
      std::vector<float> arena(elements);
      if (communicator.rank() == 0) {
        const auto found = state.find(name_at(names[i], owner));
        if (found == state.end())
          throw CheckpointError(
              fmt::format("the checkpoint has no '{}' of the optimizer", name_at(names[i], owner)));
        arena = found->second;
      }
      communicator.broadcast(std::span<float>(arena));
      if (communicator.rank() % owners != owner && owners > 1) continue;
      for_each_part(optimizers, i, arena,
                    [](auto to, auto from) { std::ranges::copy(from, to.begin()); });
    }
  }
}

}  // namespace kolo::train
