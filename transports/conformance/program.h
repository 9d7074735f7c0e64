// kolo-conformance: proves that a transport keeps the contract of transports/transport.h, clause by
// clause.
//
// To test a transport that is built into your program, or to run the clauses under a debugger or a
// sanitizer, link kolo::conformance, register the transport, and use a main of one line:
//
//     int main(int argc, char** argv) {
//       kolo::register_transport(my_table);
//       return kolo::conformance::run_program(argc, argv);
//     }
//
// Then call it as `my_program --transport my_name`.
#pragma once

namespace kolo::inline v0::conformance {

// Prints one row per clause (passed, failed with the reason, or not offered) and a count. Each
// clause runs in a separate process, a new start of this program, so that a crash or a hang fails
// that clause only. Returns 0 if no clause has failed, 1 if one has, 2 for a wrong command line.
// --help lists the options.
int run_program(int argc, char** argv);

}  // namespace kolo::inline v0::conformance
