// Link test: does formatting.cpp define all that callers of this version of fmt need?
// KoloFormatting.cmake links the two.
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <cstdint>
#include <ctime>
#include <locale>
#include <string>
#include <vector>

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv, argv + argc);
  const double number = argc;
  const std::string text =
      fmt::format("{:>8} {:04x} {:.2f} {:g} {:L} {} {} {}\n", argc, argc, number, float(number),
                  argc, fmt::join(words, ", "), std::int64_t{argc}, static_cast<const void*>(argv));
  fmt::print("{}", text);
  fmt::print("{:%Y-%m-%d} {}", fmt::gmtime(std::time_t{argc}),
             fmt::format(std::locale(), "{:L}", argc));
  fmt::print(stderr, "{:<{}} {}\n", words.front(), 20, fmt::to_string(number) + text);
  try {
    return fmt::vformat(words.front(), fmt::make_format_args(argc)).empty() ? 1 : 0;
  } catch (const fmt::format_error& error) {
    return error.what() == nullptr ? 1 : 0;
  }
}
