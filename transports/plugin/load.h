// Loading and checking the table of an external transport.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "transports/plugin.h"

namespace kolo::inline v0::plugin {

// Copy of the table, limited to the fields that this kolo knows; fields that the table lacks are
// null.
struct Plugin {
  kolo_plugin table{};
  std::string origin;   // for messages: the library's path, or "x, registered in this program"
  std::string options;  // for its make function
};

// std::invalid_argument if the table is of a different version or lacks functions. The text names
// them and the remedy.
Plugin checked(const kolo_plugin* table, std::string_view origin);

// Returns the transport of `name`: a registered one, or, if there is a slash in `name`, the one in
// the library at that path, which stays loaded. The part after a ? is its options. Nothing for any
// other name. std::invalid_argument, with the reason, if the library cannot be loaded or has no
// transport. Thread-safe.
std::optional<Plugin> find(std::string_view name);

}  // namespace kolo::inline v0::plugin
