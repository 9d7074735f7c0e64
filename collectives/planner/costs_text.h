// Text format of measured costs, to share them through the store.
#pragma once

#include <string>
#include <string_view>

#include "collectives/costs.h"

namespace kolo::inline v0 {

// With enough digits to read back the same bits.
std::string to_text(const Costs& costs);

// Throws kolo::Error kProtocol for the text of a different version.
Costs costs_from(std::string_view text);

}  // namespace kolo::inline v0
