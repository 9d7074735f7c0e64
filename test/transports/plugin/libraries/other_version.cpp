// A transport of a later version.
#include "transports/plugin.h"

const kolo_plugin* kolo_transport_plugin() {
  static const kolo_plugin table = [] {
    kolo_plugin made{};
    made.version = 1000;
    made.size = sizeof made;
    made.name = "other";
    return made;
  }();
  return &table;
}
