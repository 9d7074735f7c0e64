#include "collectives/version.h"

namespace kolo::inline v0 {

std::string_view version() { return KOLO_VERSION; }

}  // namespace kolo::inline v0
