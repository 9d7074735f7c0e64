// Main program of the tests with Catch2 2.13, which is header-only.
#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>
