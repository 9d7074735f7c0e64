// A transport of kolo's own through the table of plugin.h and back: what a whole table must carry,
// carried, and what that costs. Nothing of it but its name is the table's own.
#pragma once

#include "transports/plugin.h"

namespace kolo::test {

// All but make.
kolo_plugin own_table(const char* name, bool can_answer);

// For its make: over the transport of this build that is called `own`.
kolo_status make_own(const char* own, const kolo_plugin_request* request, kolo_transport** made,
                     kolo_error* error);

}  // namespace kolo::test
