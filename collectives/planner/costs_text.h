// Costs as a line of text: what ranks tell one another through the store.
#pragma once

#include <string>
#include <string_view>

#include "collectives/costs.h"

namespace kolo {

// Digits enough to come back the same to the bit.
std::string to_text(const Costs& costs);

// kolo::Error kProtocol where the text is of another version.
Costs costs_from(std::string_view text);

}  // namespace kolo
