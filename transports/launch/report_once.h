// Ranks of a launcher, which shows what all of them print: one speaks for all.
#pragma once

#include <string>

#include "transports/rendezvous.h"

namespace kolo::launch {

// Whether this rank is the first that has a failure to tell; also where the store is gone.
bool is_first_to_report(Store& store);

// Who speaks for all prints the line on standard error, and ends with `code`; the others do not end
// before that (or 10 s), and with the same code (or 1). The launcher ends all that are left as soon
// as one has failed.
void report_for_all(Store& store, const std::string& line, int code);
int wait_until_reported(Store& store) noexcept;

// What ranks refuse alike as they begin, options or a transport: printed by one where a launcher
// serves them a store (KOLO_STORE=tcp:...), else by each. Returns the code to end with.
int refuse_once(const std::string& line, int code) noexcept;

}  // namespace kolo::launch
