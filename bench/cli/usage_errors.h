// Messages about wrong command lines, instead of the parser's own.
#pragma once

#include <string>

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace kolo::bench {

// std::invalid_argument, with the list of commands, if the first word is not a command.
void require_command(const CLI::App& app, int argc, const char* const* argv);

// One line: the option, what is wrong with it, and where to find help.
std::string explain(const CLI::ParseError& error, const CLI::App& app, int argc,
                    const char* const* argv);

}  // namespace kolo::bench
