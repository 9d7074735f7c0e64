// The clauses of kolo over this project's transport, in one program: prove --transport unix
#include "transports/conformance/program.h"
#include "transports/plugin/registration.h"

int main(int argc, char** argv) {
  kolo::register_transport(*kolo_transport_plugin());
  return kolo::conformance::run_program(argc, argv);
}
