#include "tensor/kernels/kernels.h"

#include <fmt/format.h>

#include <stdexcept>

namespace kolo::tensor {

// The table of backends in this build; CMake writes it, one row per kolo_component(backend ...).
#define KOLO_ROW(name) std::unique_ptr<Backend> make_##name(int threads, Precision precision);
#include "backend_table.inc"
#undef KOLO_ROW

namespace {

struct Row {
  std::string_view name;
  std::unique_ptr<Backend> (*make)(int threads, Precision precision);
};

constexpr Row kTable[] = {
#define KOLO_ROW(name) {#name, make_##name},
#include "backend_table.inc"
#undef KOLO_ROW
};

}  // namespace

Precision precision_from(std::string_view name) {
  if (name == "float32") return Precision::float32;
  if (name == "bfloat16") return Precision::bfloat16;
  throw std::invalid_argument(
      fmt::format("there is no precision '{}'; there are: float32, bfloat16", name));
}

std::vector<std::string> backend_names() {
  std::vector<std::string> names;
  for (const Row& row : kTable) names.emplace_back(row.name);
  return names;
}

std::unique_ptr<Backend> make_backend(std::string_view name, int threads, Precision precision) {
  if (threads < 1) {
    throw std::invalid_argument(
        fmt::format("backend {}: at least one thread is needed, not {}", name, threads));
  }
  std::string known;
  for (const Row& row : kTable) {
    if (row.name == name) return row.make(threads, precision);
    known += fmt::format("{}{}", known.empty() ? "" : ", ", row.name);
  }
  throw std::invalid_argument(
      fmt::format("there is no backend '{}' in this build; it has: {}", name, known));
}

}  // namespace kolo::tensor
