// Plugin table whose functions do nothing; tests replace single functions.
#pragma once

#include <cstddef>
#include <cstdint>

#include "transports/plugin.h"

namespace kolo::test {

// A table with all required functions; its make fails.
inline kolo_plugin fake_table(const char* name) {
  kolo_plugin table{};
  table.version = KOLO_PLUGIN_VERSION;
  table.size = sizeof table;
  table.name = name;
  table.reach = KOLO_NETWORK;
  table.make = [](const kolo_plugin_request*, kolo_transport**, kolo_error*) {
    return KOLO_FAILED;
  };
  table.destroy = [](kolo_transport*) {};
  table.channel = [](kolo_transport* transport, int) {
    return reinterpret_cast<kolo_channel*>(transport);
  };
  table.progress = [](kolo_transport*, kolo_error*) { return KOLO_DONE; };
  table.quiesce = [](kolo_transport*) {};
  table.send = [](kolo_channel*, const void*, std::size_t, kolo_error*) { return KOLO_NOT_NOW; };
  table.receive = [](kolo_channel*, void*, std::size_t, kolo_error*) { return KOLO_NOT_NOW; };
  table.completed = [](kolo_channel*, std::uint64_t* segments, kolo_error*) {
    *segments = 0;
    return KOLO_DONE;
  };
  return table;
}

}  // namespace kolo::test
