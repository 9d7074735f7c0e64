// A transport that was linked against a missing library.
#include "transports/plugin.h"

extern "C" const kolo_plugin* nobody_has_this();

const kolo_plugin* kolo_transport_plugin() { return nobody_has_this(); }
