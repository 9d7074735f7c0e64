// From a call that was validated, or is like one before, to its operation: what the communicator's
// methods have in common.
#pragma once

#include <memory>
#include <optional>

#include "collectives/engine/checked_call.h"
#include "collectives/engine/engine.h"
#include "collectives/work.h"

namespace kolo::submission {

// Blocking. std::invalid_argument for a persistent call.
void run(Engine& engine, Call call, Update update = {});

Work issue(const std::shared_ptr<Engine>& engine, Call call, Update update = {});

// A call with default options that is like one before has run by the short way.
bool ran_from_cache(Engine& engine, CallKey key, const void* in, void* out,
                    const CallOptions& call);

// The same of an asynchronous one; none where it is not like one before.
std::optional<Work> issued_from_cache(const std::shared_ptr<Engine>& engine, CallKey key,
                                      const void* in, void* out, const CallOptions& call);

}  // namespace kolo::submission
