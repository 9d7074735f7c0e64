// State of a communicator, shared by the files that implement its methods.
#pragma once

#include <memory>

#include "collectives/communicator.h"
#include "collectives/engine/checked_call.h"
#include "collectives/engine/engine.h"

namespace kolo::inline v0 {

struct Communicator::State : Engine {
  using Engine::Engine;
  checked_calls::Caller caller() const { return {rank(), size()}; }
  // Leaks the state on purpose: its destructor would send goodbyes over the parent's sockets.
  static void leak_in_child(std::shared_ptr<State> state) { state->itself_ = state; }

 private:
  std::shared_ptr<State> itself_;
};

}  // namespace kolo::inline v0
