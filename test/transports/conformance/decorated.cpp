// Rows of the table that are others of its rows, decorated or with other settings. Which is what
// the name ends with.
#include "test/transports/conformance/transport_table.h"
#include "transports/tcp.h"

namespace kolo::test {

std::unique_ptr<Transport> make_shaped_inproc(const TransportRequest& request) {
  TransportRequest shaped = request;
  shaped.shape = "100Gbit,20us";
  return make_transport("inproc", shaped);
}

std::unique_ptr<Transport> make_shaped_tcp(const TransportRequest& request) {
  TransportRequest shaped = request;
  shaped.shape = "10Gbit,jitter=50us,seed=3";
  return make_transport("tcp", shaped);
}

std::unique_ptr<Transport> make_tcp_of_3_lanes(const TransportRequest& request) {
  TcpSettings settings;
  settings.lanes = 3;
  if (request.segment_bytes != 0) settings.segment_bytes = request.segment_bytes;
  return make_tcp(request, settings);
}

// Credit is accepted at once, as the suite wants it: a storm on the way out would say otherwise.
std::unique_ptr<Transport> make_stormy_inproc(const TransportRequest& request) {
  TransportRequest stormy = request;
  stormy.fault = "storm@times=3,on=in";
  return make_transport("inproc", stormy);
}

}  // namespace kolo::test
