#include "tensor/kernels/kernels.h"

#include <fmt/format.h>

#include <stdexcept>

namespace kolo::tensor {

// The table of backends in this build; CMake writes it, one row per kolo_component(backend ...).
#define KOLO_ROW(name) std::unique_ptr<Backend> make_##name(int threads);
#include "backend_table.inc"
#undef KOLO_ROW

namespace {

struct Row {
  std::string_view name;
  std::unique_ptr<Backend> (*make)(int threads);
};

constexpr Row kTable[] = {
#define KOLO_ROW(name) {#name, make_##name},
#include "backend_table.inc"
#undef KOLO_ROW
};

}  // namespace

std::vector<std::string> backend_names() {
  std::vector<std::string> names;
  for (const Row& row : kTable) names.emplace_back(row.name);
  return names;
}

std::unique_ptr<Backend> make_backend(std::string_view name, int threads) {
  if (threads < 1) {
    throw std::invalid_argument(
        fmt::format("backend {}: at least one thread is needed, not {}", name, threads));
  }
  std::string known;
  for (const Row& row : kTable) {
    if (row.name == name) return row.make(threads);
    known += fmt::format("{}{}", known.empty() ? "" : ", ", row.name);
  }
  throw std::invalid_argument(
      fmt::format("there is no backend '{}' in this build; it has: {}", name, known));
}

}  // namespace kolo::tensor
