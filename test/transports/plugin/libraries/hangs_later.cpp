// A library that can be loaded, and never says what it is.
#include <unistd.h>

#include "transports/plugin.h"

const kolo_plugin* kolo_transport_plugin() {
  for (;;) ::pause();
}
