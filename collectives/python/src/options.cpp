// Enumerations, options and reductions.
#include <nanobind/stl/chrono.h>
#include <nanobind/stl/string.h>

#include "collectives/python/src/module.h"
#include "collectives/version.h"

namespace kolo::python {

namespace {

using namespace nb::literals;

// `combine`: called with the output, the left and the right elements, as memoryviews of bytes.
UserReduceOp user_reduce_op(std::size_t element_bytes, nb::object combine, bool is_commutative,
                            std::uint16_t tag) {
  UserReduceOp made;
  made.element_bytes = element_bytes;
  made.is_commutative = is_commutative;
  made.tag = tag;
  made.combine = [function = make_function(std::move(combine)), element_bytes](
                     void* out, const void* left, const void* right, std::size_t count) {
    call_python([&] {
      const std::size_t bytes = count * element_bytes;
      const auto read = [&](const void* data) {
        return memoryview_of(const_cast<void*>(data), bytes, ElementType::kUint8, false);
      };
      (*function)(memoryview_of(out, bytes, ElementType::kUint8, true), read(left), read(right));
    });
  };
  return made;
}

constexpr const char* kCallText =
    R"(Options of one call. Algorithm and segment length must be the same on every rank.

algorithm: a name of algorithm_names(); empty: the planner's choice
segment_bytes: 0: the transport's choice
timeout: in seconds, from the issue of the operation to its end; 0: the communicator's
scale: for ReduceOp.SCALED_SUM, the factor of this rank's elements
persistent: the _async form only plans the operation; Work.start() issues it, any number of times)";

}  // namespace

void bind_options(nb::module_& module) {
  module.attr("version") = std::string(version());
  nb::enum_<ReduceOp>(module, "ReduceOp", "How the elements of several ranks are combined.")
      .value("SUM", ReduceOp::kSum)
      .value("AVERAGE", ReduceOp::kAverage)
      .value("MIN", ReduceOp::kMin)
      .value("MAX", ReduceOp::kMax)
      .value("PRODUCT", ReduceOp::kProduct)
      .value("BIT_AND", ReduceOp::kBitAnd)
      .value("BIT_OR", ReduceOp::kBitOr)
      .value("BIT_XOR", ReduceOp::kBitXor)
      .value("SCALED_SUM", ReduceOp::kScaledSum, "Of floats, each times its rank's scale.");
  nb::enum_<Reproducibility>(module, "Reproducibility",
                             "Which bits a reduction of floats may have; equal on all ranks.")
      .value("FAST", Reproducibility::kFast, "Those of the fastest algorithm.")
      .value("ORDERED", Reproducibility::kOrdered, "The same in every run of the same job.")
      .value("INVARIANT", Reproducibility::kInvariant, "Those of ((x0 op x1) op x2) ...");
  nb::class_<UserReduceOp>(module, "UserReduceOp")
      .def_static("make", user_reduce_op, "element_bytes"_a, "combine"_a, "is_commutative"_a,
                  "tag"_a);
  nb::class_<Call>(module, "CallOptions", kCallText)
      .def(
          "__init__",
          [](Call* self, std::string algorithm, std::size_t segment_bytes, double timeout,
             double scale, bool is_persistent) {
            new (self) Call{std::move(algorithm), segment_bytes,
                            std::chrono::duration<double>(timeout), scale, is_persistent};
            milliseconds_of(self->timeout);  // refuses a wrong one
          },
          nb::kw_only(), "algorithm"_a = "", "segment_bytes"_a = 0, "timeout"_a = 0.0,
          "scale"_a = 1.0, "persistent"_a = false);
  nb::class_<Count>(module, "Count",
                    "A number of elements without memory: of a rank that only states its count.")
      .def(
          "__init__",
          [](Count* self, std::size_t count, const std::string& dtype) {
            new (self) Count{count, element_type(dtype)};
          },
          "count"_a, "dtype"_a = "float32");
}

}  // namespace kolo::python
