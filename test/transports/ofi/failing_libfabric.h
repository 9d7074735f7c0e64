// Wrapper of this machine's libfabric in which some providers fail on demand. It takes the soname
// of libfabric.so.1, and forwards all other calls.
#pragma once

#include <string>

namespace kolo::test {

// kNaming: the opened endpoint has no name. kInjecting: while this is set, an endpoint opened with
// it refuses all injected messages.
enum class Fails { kNever, kFabric, kDomain, kEndpoint, kNaming, kInjecting };

// From now on `provider` fails at this step for this thread; other providers do not.
void let_fail(const std::string& provider, Fails at);

// The same for all providers.
void let_all_fail(Fails at);

}  // namespace kolo::test
