// From a validated or repeated call to its operation; shared by the communicator's methods.
#pragma once

#include <memory>
#include <optional>

#include "collectives/engine/checked_call.h"
#include "collectives/engine/engine.h"
#include "collectives/work.h"

namespace kolo::inline v0::submission {

// Blocking. Throws std::invalid_argument for a persistent call.
void run(Engine& engine, Call call, Update update = {});

Work issue(const std::shared_ptr<Engine>& engine, Call call, Update update = {});

// Tries the fast path of a repeated call with default options. False: nothing was done.
bool ran_from_cache(Engine& engine, CallKey key, const void* in, void* out,
                    const CallOptions& call);

// The same for an asynchronous call. nullopt: nothing was done.
std::optional<Work> issued_from_cache(const std::shared_ptr<Engine>& engine, CallKey key,
                                      const void* in, void* out, const CallOptions& call);

}  // namespace kolo::inline v0::submission
