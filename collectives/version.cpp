#include "collectives/version.h"

namespace kolo {

std::string_view version() { return KOLO_VERSION; }

}  // namespace kolo
