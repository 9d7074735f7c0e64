// The tracing decorator: every segment of a rank in a timeline that chrome://tracing and
// ui.perfetto.dev show.
//
// KOLO_TRACE=PATH: when its transport is destroyed, rank 3 writes PATH-rank3.json, whole or not at
// all. What is there is never overwritten: the next free one of PATH-rank3.2.json,
// PATH-rank3.3.json
// ... is taken (a job with several communicators has several transports). A process is a rank, a
// thread of it a direction and a peer; an event is a segment, from when it was first asked for to
// when it was handed over, with its bytes and how much of that time was waiting. Times are those of
// the machine's monotonic clock, so files of one machine fit together:
//
//     jq -s add PATH-rank*.json > all.json
//
// A segment costs two readings of the clock (about 50 ns) and 40 bytes of memory; after a million
// segments the rest is counted, not kept, and the file says how many.
#pragma once

#include <memory>
#include <string>

#include "../transport.h"

namespace kolo {

// `inner`, traced. Error kUnavailable where nothing can be written at `path`.
std::unique_ptr<Transport> make_traced(std::unique_ptr<Transport> inner, const std::string& path);

// Writes the file of a transport that make_traced made now, where a failure can be told; its end
// then writes none. Nothing of any other transport. Error kSystem names the file and says why not.
// Threading: as the transport's calls.
void write_trace_of(Transport& transport);

}  // namespace kolo
