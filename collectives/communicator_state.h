// What a communicator holds; shared with the files that implement its methods.
#pragma once

#include "collectives/calls.h"
#include "collectives/communicator.h"
#include "collectives/engine.h"

namespace kolo {

struct Communicator::State : Engine {
  using Engine::Engine;
  calls::Caller caller() const { return {rank(), size()}; }
};

}  // namespace kolo
