// A transport of kolo's own as a library from outside: with all of kolo in it, and nothing but the
// table between. What it takes longer than the transport itself is what the table costs.
#include "test/transports/conformance/tabled.h"
#include "transports/plugin.h"

const kolo_plugin* kolo_transport_plugin() {
  static const kolo_plugin table = [] {
    kolo_plugin made = kolo::test::own_table("own-" KOLO_OWN, KOLO_OWN_ANSWERS);
    made.make = [](const kolo_plugin_request* request, kolo_transport** transport,
                   kolo_error* error) {
      return kolo::test::make_own(KOLO_OWN, request, transport, error);
    };
    return made;
  }();
  return &table;
}
