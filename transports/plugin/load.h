// A table of a transport from outside, checked: where it comes from, and what is wrong with it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "transports/plugin.h"

namespace kolo::plugin {

// The table, as much of it as this kolo knows, with null for what it does not have.
struct Plugin {
  kolo_plugin table{};
  std::string origin;   // for messages: the library's path, or "x, registered in this program"
  std::string options;  // for its make
};

// std::invalid_argument where the table is of another version, or lacks functions: it names them,
// and says what to do.
Plugin checked(const kolo_plugin* table, std::string_view origin);

// The transport that `name` means: the one registered as that, or, where there is a slash in it,
// the one in the library at that path, which stays loaded. What follows a ? is its options. Nothing
// for another name; std::invalid_argument where the library cannot be loaded or is no transport,
// with the reason. Thread-safe.
std::optional<Plugin> find(std::string_view name);

}  // namespace kolo::plugin
