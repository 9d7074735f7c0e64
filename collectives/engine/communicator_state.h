// State of a communicator, shared by the files that implement its methods.
#pragma once

#include <cstdint>
#include <memory>

#include "collectives/communicator.h"
#include "collectives/engine/checked_call.h"
#include "collectives/engine/engine.h"
#include "collectives/engine/fork_generation.h"

namespace kolo::inline v0 {

struct Communicator::State : Engine {
  using Engine::Engine;
  checked_calls::Caller caller() const { return {rank(), size()}; }
  // False in a child made by fork(): the child must not use the communicator.
  bool is_in_creating_process() const { return fork_generation() == made_in_; }
  // Leaks the state on purpose: its destructor would send goodbyes over the parent's sockets.
  static void leak_in_child(std::shared_ptr<State> state) { state->itself_ = state; }

 private:
  const std::uint64_t made_in_ = fork_generation();
  std::shared_ptr<State> itself_;
};

}  // namespace kolo::inline v0
