// Rows of the table that are other rows with decorators or other settings, which the end of the
// name gives.
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "test/transports/conformance/transport_table.h"
#include "transports/tcp/transport.h"

namespace kolo::test {

namespace {

// Folder for traces, which lives as long as the process.
class Folder {
 public:
  Folder() {
    std::string name = std::filesystem::temp_directory_path() / "kolo-traces-XXXXXX";
    if (::mkdtemp(name.data()) != nullptr) path_ = name;
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  std::string file() const { return path_ / "trace"; }

 private:
  std::filesystem::path path_;
};

std::unique_ptr<Transport> make_traced_over(std::string_view inner,
                                            const TransportRequest& request) {
  static const Folder folder;
  TransportRequest traced = request;
  traced.trace = folder.file();
  return make_transport(inner, traced);
}

std::unique_ptr<Transport> make_shaped_over(std::string_view inner, const char* shape,
                                            const TransportRequest& request) {
  TransportRequest shaped = request;
  shaped.shape = shape;
  return make_transport(inner, shaped);
}

// The suite expects that credit is accepted at once; a storm on outgoing calls would delay it.
std::unique_ptr<Transport> make_stormy_over(std::string_view inner,
                                            const TransportRequest& request) {
  TransportRequest stormy = request;
  stormy.fault = "storm@times=3,on=in";
  return make_transport(inner, stormy);
}

}  // namespace

std::unique_ptr<Transport> make_shaped_inproc(const TransportRequest& request) {
  return make_shaped_over("inproc", "100Gbit,20us", request);
}

std::unique_ptr<Transport> make_shaped_tcp(const TransportRequest& request) {
  return make_shaped_over("tcp", "10Gbit,jitter=50us,seed=3", request);
}

std::unique_ptr<Transport> make_tcp_of_3_lanes(const TransportRequest& request) {
  TcpSettings settings;
  settings.lanes = 3;
  if (request.segment_bytes != 0) settings.segment_bytes = request.segment_bytes;
  return make_tcp(request, settings);
}

std::unique_ptr<Transport> make_stormy_inproc(const TransportRequest& request) {
  return make_stormy_over("inproc", request);
}

std::unique_ptr<Transport> make_shaped_ofi(const TransportRequest& request) {
  return make_shaped_over("ofi", "100Gbit,20us", request);
}

std::unique_ptr<Transport> make_stormy_ofi(const TransportRequest& request) {
  return make_stormy_over("ofi", request);
}

std::unique_ptr<Transport> make_mixed_pairs(const TransportRequest& request) {
  TransportRequest mixed = request;
  mixed.host_id = "host" + std::to_string(request.rank / 2);
  return make_transport("shm+tcp", mixed);
}

std::unique_ptr<Transport> make_mixed_crosswise(const TransportRequest& request) {
  TransportRequest mixed = request;
  mixed.host_id = "host" + std::to_string(request.rank % 2);
  return make_transport("shm+tcp", mixed);
}

std::unique_ptr<Transport> make_traced_shm(const TransportRequest& request) {
  return make_traced_over("shm", request);
}

std::unique_ptr<Transport> make_traced_tcp(const TransportRequest& request) {
  return make_traced_over("tcp", request);
}

std::unique_ptr<Transport> make_traced_ofi(const TransportRequest& request) {
  return make_traced_over("ofi", request);
}

}  // namespace kolo::test
