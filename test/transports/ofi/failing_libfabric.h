// The libfabric of this machine, of which some providers fail to open where a test says so. It
// stands in libfabric.so.1's place (its soname), and hands all else on.
#pragma once

#include <string>

namespace kolo::test {

// kNaming: an endpoint that was opened so has no name. kInjecting: it refuses for ever what is
// injected, as long as this is said.
enum class Fails { kNever, kFabric, kDomain, kEndpoint, kNaming, kInjecting };

// From now on `provider` fails at that step for what this thread opens; the others do not.
void let_fail(const std::string& provider, Fails at);

// The same for all providers.
void let_all_fail(Fails at);

}  // namespace kolo::test
