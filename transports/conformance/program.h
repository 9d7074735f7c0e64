// kolo-conformance: proves that a transport keeps the contract of transports/transport.h, clause by
// clause.
//
// Whoever builds a transport into a program of his own, or wants to run its clauses under a
// debugger or a sanitizer, links kolo::conformance, registers it, and has a main of one line:
//
//     int main(int argc, char** argv) {
//       kolo::register_transport(my_table);
//       return kolo::conformance::run_program(argc, argv);
//     }
//
// and calls it as `my_program --transport my_name`.
#pragma once

namespace kolo::conformance {

// A row per clause, passed, failed (and why) or not offered, and a count. Each clause runs in a
// process of its own, this program started again, so that a crash or a hang is the clause's failure
// and nothing else's. Returns 0 where no clause has failed, 1 where one has, 2 for arguments that
// make no sense; --help lists them.
int run_program(int argc, char** argv);

}  // namespace kolo::conformance
