// What a communicator holds; shared with the files that implement its methods.
#pragma once

#include <cstdint>
#include <memory>

#include "collectives/communicator.h"
#include "collectives/engine/checked_call.h"
#include "collectives/engine/engine.h"
#include "collectives/engine/fork_generation.h"

namespace kolo {

struct Communicator::State : Engine {
  using Engine::Engine;
  checked_calls::Caller caller() const { return {rank(), size()}; }
  // And not in a child by fork() of the process that made it.
  bool is_in_creating_process() const { return fork_generation() == made_in_; }
  // Never ends: a child's goodbyes would go over its parent's sockets.
  static void leak_in_child(std::shared_ptr<State> state) { state->itself_ = state; }

 private:
  const std::uint64_t made_in_ = fork_generation();
  std::shared_ptr<State> itself_;
};

}  // namespace kolo
