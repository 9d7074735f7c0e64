// The main program of every test where Catch2 is the header-only 2.13.
#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>
