// Catch2, version 2.13 (Debian 12) or 3. Only this header knows the difference.
#pragma once

#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
#else
#include <catch2/catch.hpp>
#endif

#if __has_include(<catch2/catch_all.hpp>)
using Catch::Approx;
#else
using Catch::Detail::Approx;
#endif

// Matcher: the text contains `part`.
#if __has_include(<catch2/catch_all.hpp>)
using Catch::Matchers::ContainsSubstring;
#else
inline auto ContainsSubstring(const std::string& part) { return Catch::Matchers::Contains(part); }
#endif
