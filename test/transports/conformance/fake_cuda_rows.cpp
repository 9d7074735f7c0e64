// Rows over a fake machine with a CUDA device: the host's calls of transports that also serve
// streams.
#include <string>

#include "test/transports/conformance/transport_table.h"
#include "test/transports/cuda/fake_driver.h"
#include "transports/base/staged.h"
#include "transports/cuda/transport.h"

namespace kolo::test {

namespace {

// One machine for all jobs, since their ranks are made one by one.
FakeMachine& machine() {
  static FakeMachine one;
  return one;
}

std::unique_ptr<Transport> make_staged_over(std::string_view host,
                                            const TransportRequest& request) {
  StagedSettings settings;
  settings.device = 0;
  settings.driver = machine().process();
  return make_staged(make_transport(host, request), settings);
}

}  // namespace

std::vector<std::string> played_violations() { return machine().violations(); }

std::unique_ptr<Transport> make_played_cuda_ipc(const TransportRequest& request) {
  CudaIpcSettings settings;
  const auto driver = machine().process();
  settings.driver = driver;
  settings.device = 0;
  settings.segment_bytes = 4096;
  settings.process = "played " + std::to_string(reinterpret_cast<std::uintptr_t>(driver.get()));
  settings.make_host = [](const TransportRequest& beneath) {
    return make_transport("shm", beneath);
  };
  return make_cuda_ipc(request, settings);
}

std::unique_ptr<Transport> make_staged_inproc(const TransportRequest& request) {
  return make_staged_over("inproc", request);
}

std::unique_ptr<Transport> make_staged_shm(const TransportRequest& request) {
  return make_staged_over("shm", request);
}

std::unique_ptr<Transport> make_staged_tcp(const TransportRequest& request) {
  return make_staged_over("tcp", request);
}

}  // namespace kolo::test
