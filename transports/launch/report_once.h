// Reporting a failure once for all ranks of a launcher, which shows the output of all ranks.
#pragma once

#include <string>

#include "transports/rendezvous.h"

namespace kolo::inline v0::launch {

// Whether this rank is the first with a failure to report. Also true if the store is gone.
bool is_first_to_report(Store& store);

// The first rank prints the line on standard error, and ends with `code`. The other ranks wait for
// that (10 s at most), and end with the returned code, which is the same (or 1). They must wait,
// since the launcher ends all ranks as soon as one has failed.
void report_for_all(Store& store, const std::string& line, int code);
int wait_until_reported(Store& store) noexcept;

// Reports an error that all ranks have at the start (wrong options, or a transport). One rank
// prints it if a launcher serves a store (KOLO_STORE=tcp:...), else each rank. Returns the code to
// end with.
int refuse_once(const std::string& line, int code) noexcept;

}  // namespace kolo::inline v0::launch
