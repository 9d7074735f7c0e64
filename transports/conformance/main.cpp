// The program kolo-conformance: see program.h.
#include "transports/conformance/program.h"

int main(int argc, char** argv) { return kolo::conformance::run_program(argc, argv); }
