// A library that never comes back from being loaded.
#include <unistd.h>

#include "transports/plugin.h"

namespace {

int wait_for_ever() {
  for (;;) ::pause();
}

[[maybe_unused]] const int kNever = wait_for_ever();

}  // namespace

const kolo_plugin* kolo_transport_plugin() { return nullptr; }
