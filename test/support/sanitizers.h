// Which sanitizer this build has, for tests whose grids are played whole without one: under it they
// take so much longer that each case must reach code that no other reaches.
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

// `few` under a sanitizer, or where the environment has TEST_FEW: a part of `all` by which the same
// code is reached.
template <typename T = int>
std::vector<T> all_or_few(std::vector<T> all, std::vector<T> few) {
  return kIsSanitized || std::getenv("TEST_FEW") != nullptr ? few : all;
}

}  // namespace kolo::test
