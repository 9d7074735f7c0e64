// A library that crashes as it is loaded, before anybody can ask it anything.
#include <csignal>

#include "transports/plugin.h"

namespace {

[[maybe_unused]] const int kCrash = std::raise(SIGSEGV);

}  // namespace

const kolo_plugin* kolo_transport_plugin() { return nullptr; }
