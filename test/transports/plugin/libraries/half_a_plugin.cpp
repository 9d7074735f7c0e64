// A transport with a make function and no other ones.
#include "transports/plugin.h"

const kolo_plugin* kolo_transport_plugin() {
  static const kolo_plugin table = [] {
    kolo_plugin made{};
    made.version = KOLO_PLUGIN_VERSION;
    made.size = sizeof made;
    made.name = "half";
    made.make = [](const kolo_plugin_request*, kolo_transport**, kolo_error*) {
      return KOLO_FAILED;
    };
    return made;
  }();
  return &table;
}
