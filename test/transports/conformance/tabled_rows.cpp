// Transports of this build by way of the table, in this process: two rows for the suite.
#include "test/transports/conformance/tabled.h"
#include "test/transports/conformance/transport_table.h"
#include "transports/plugin/load.h"
#include "transports/plugin/transport.h"

namespace kolo::test {

std::unique_ptr<Transport> make_tabled_shm(const TransportRequest& request) {
  kolo_plugin table = own_table("tabled-shm", true);
  table.make = [](const kolo_plugin_request* told_request, kolo_transport** made,
                  kolo_error* error) { return make_own("shm", told_request, made, error); };
  return plugin::make_plugged(plugin::checked(&table, "of the test"), request);
}

std::unique_ptr<Transport> make_tabled_tcp(const TransportRequest& request) {
  kolo_plugin table = own_table("tabled-tcp", false);
  table.make = [](const kolo_plugin_request* told_request, kolo_transport** made,
                  kolo_error* error) { return make_own("tcp", told_request, made, error); };
  return plugin::make_plugged(plugin::checked(&table, "of the test"), request);
}

}  // namespace kolo::test
