// Tracing decorator: timeline of every segment of a rank, for chrome://tracing and ui.perfetto.dev.
//
// With KOLO_TRACE=PATH, rank 3 writes PATH-rank3.json when its transport is destroyed, atomically.
// Existing files are never overwritten: it takes the next free name of PATH-rank3.2.json,
// PATH-rank3.3.json ... (a job with several communicators has several transports). In the timeline,
// a process is a rank and a thread is a direction and a peer. An event is a segment, from its first
// request to its hand-over, with its bytes and the part of that time spent waiting. Times are those
// of the machine's monotonic clock, so files of one machine can be joined:
//
//     jq -s add PATH-rank*.json > all.json
//
// A segment costs three readings of the clock (about 50 ns) and 40 bytes of memory. After a
// million segments the rest is counted but not kept; the file contains that count.
#pragma once

#include <memory>
#include <string>

#include "../log.h"
#include "../transport.h"

namespace kolo::inline v0 {

// Wraps `inner`. If the destructor cannot write the file, `log` receives the error. Error
// kUnavailable if no file can be written at `path`.
std::unique_ptr<Transport> make_traced(std::unique_ptr<Transport> inner, const std::string& path,
                                       Log log = {});

// Writes the file of a traced transport now, so that an error can be thrown; its destructor then
// writes none. Does nothing for other transports. Error kSystem contains the file and the reason.
// Threading: as the transport's calls.
void write_trace_of(Transport& transport);

}  // namespace kolo::inline v0
