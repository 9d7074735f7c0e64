// Chrome trace: the timeline of iterations as a file for chrome://tracing and ui.perfetto.dev.
// Source: "Trace Event Format", Google, 2016.
#pragma once

#include <map>
#include <span>
#include <string>

#include "train/experiment/run_record.h"

namespace kolo::train {

// The file's text. A process is a rank; its first thread is the training thread, and the others are
// the buckets in exchange.
std::string chrome_trace(const RunRecord& run);

// "timeline-ring.json" and so on: the first run of each arm that has a timeline. Name to contents.
std::map<std::string, std::string> timeline_files(std::span<const RunRecord> runs);

}  // namespace kolo::train
