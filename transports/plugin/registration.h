// Transports from outside (plugin.h), for the C++ programs that use them.
//
//   by its path    "/path/libx.so" or "./libx.so" (with a slash) where a transport's name stands:
//                  CommunicatorOptions::transport, --transport, KOLO_TRANSPORT
//   registered     register_transport(table): from then on its name is one in this process
//
// What follows a ? is the transport's own options, handed to its make as they are:
// "./libx.so?lanes=2". All ranks give the same. "auto" never chooses one of them. How to
// write one, and how to prove it: share/doc/kolo/transports/GUIDE.md, as it is installed.
#pragma once

#include <string_view>

#include "../plugin.h"

namespace kolo {

// Whether `name` is that of a transport from outside: a library's path, or registered.
bool is_from_outside(std::string_view name);

// The names that were registered are the process's, as the libraries are that it has loaded: a name
// means one transport to all of its communicators. The table and what it points to live as long as
// the process. Thread-safe. std::invalid_argument where the table is of another version or lacks
// functions, where its name is no word, or another transport's.
void register_transport(const kolo_plugin& table);

}  // namespace kolo
