// kolo's clauses over the transport of this project, which is built in: prove --transport unix
#include "transports/conformance/program.h"
#include "transports/plugin/registration.h"

int main(int argc, char** argv) {
  kolo::register_transport(*kolo_transport_plugin());
  return kolo::conformance::run_program(argc, argv);
}
