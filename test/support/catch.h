// The one place that knows which Catch2 this is: 2.13 of Debian 12, or 3.
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

// A matcher: the text has this part.
#if __has_include(<catch2/catch_all.hpp>)
using Catch::Matchers::ContainsSubstring;
#else
inline auto ContainsSubstring(const std::string& part) { return Catch::Matchers::Contains(part); }
#endif
