// Python module kolo_torch._backend.
#include <pybind11/chrono.h>
#include <torch/extension.h>

#include <torch/csrc/distributed/c10d/Store.hpp>

#include "collectives/python/torch/backend/backend.h"

namespace py = pybind11;

namespace {

c10::intrusive_ptr<c10d::Backend> create(const c10::intrusive_ptr<c10d::Store>& store, int rank,
                                         int size, std::chrono::milliseconds timeout,
                                         const std::string& name) {
  return c10::make_intrusive<kolo_torch::KoloBackend>(store, rank, size, timeout, name);
}

// torch 2.6 has no shutdown() of backends.
void shut_down(const c10::intrusive_ptr<c10d::Backend>& made) {
  dynamic_cast<kolo_torch::KoloBackend&>(*made).shutdown();
}

}  // namespace

PYBIND11_MODULE(_backend, module) {
  module.doc() = "The backend \"kolo\" of torch.distributed.";
  module.def("create", &create, py::arg("store"), py::arg("rank"), py::arg("size"),
             py::arg("timeout"), py::arg("name"), py::call_guard<py::gil_scoped_release>());
  module.def("shutdown", &shut_down, py::call_guard<py::gil_scoped_release>());
  module.def("kolo_version", &kolo_version);
}
