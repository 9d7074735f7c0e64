// What is wrong with a command line, in the words of this program rather than of its parser.
#pragma once

#include <string>

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace kolo::bench {

// std::invalid_argument where the first word is no command, listing those there are.
void require_command(const CLI::App& app, int argc, const char* const* argv);

// One line: the flag, what is wrong with it, and where help is.
std::string explain(const CLI::ParseError& error, const CLI::App& app, int argc,
                    const char* const* argv);

}  // namespace kolo::bench
