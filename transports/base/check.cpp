#include "transports/base/check.h"

#include <stdexcept>
#include <string>

namespace kolo::inline v0 {

void fail_check(std::string_view message) { throw std::invalid_argument(std::string(message)); }

}  // namespace kolo::inline v0
