// Sanitizer of this build, for tests over grids of cases. Without a sanitizer they run all cases.
// With one they take much longer, so they run only cases that reach code of their own.
#pragma once

#include <cstdlib>
#include <vector>

namespace kolo::test {

#if defined(__SANITIZE_THREAD__)
inline constexpr bool kIsThreadSanitized = true;
#else
inline constexpr bool kIsThreadSanitized = false;
#endif

#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool kIsSanitized = true;
#else
inline constexpr bool kIsSanitized = kIsThreadSanitized;
#endif

// Returns `few` under a sanitizer or if the environment has TEST_FEW, else `all`. `few` is a part
// of `all` that reaches the same code.
template <typename T = int>
std::vector<T> all_or_few(std::vector<T> all, std::vector<T> few) {
  return kIsSanitized || std::getenv("TEST_FEW") != nullptr ? few : all;
}

}  // namespace kolo::test
