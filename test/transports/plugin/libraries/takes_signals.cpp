// A library that handles the program's signals from the moment it is loaded, as libpsm does.
#include <csignal>

extern "C" int kolo_answer() { return 42; }

namespace {

void swallow(int) {}

[[maybe_unused]] const auto kBefore = std::signal(SIGTERM, swallow);

}  // namespace
