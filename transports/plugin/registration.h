// External transports (plugin.h) in C++ programs.
//
//     by its path    "/path/libx.so" or "./libx.so" (with a slash) as a transport's name in
//                    CommunicatorOptions::transport, --transport, KOLO_TRANSPORT
//     registered     register_transport(table): its name is then valid in this process
//
// The part after a ? is passed to its make function as options: "./libx.so?lanes=2". All ranks must
// use the same. "auto" never chooses an external transport. How to write and test one:
// share/doc/kolo/transports/GUIDE.md in the installation.
#pragma once

#include <string_view>

#include "../plugin.h"

namespace kolo::inline v0 {

// True if `name` is that of an external transport: a library's path, or a registered name.
bool is_from_outside(std::string_view name);

// Registered names belong to the process, as loaded libraries do: a name means the same transport
// to all communicators. The table and its data must live as long as the process. Thread-safe.
// std::invalid_argument if the table is of a different version or lacks functions, or if its name
// is not a word or is used by another transport.
void register_transport(const kolo_plugin& table);

}  // namespace kolo::inline v0
