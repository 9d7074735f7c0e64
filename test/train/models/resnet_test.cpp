// Residual networks against torchvision's: names and shapes, and logits, loss, gradients and
// running statistics of whole passes. ResNet-18 is made of basic blocks, ResNet-50 of bottlenecks.
//
// The reference was computed in float64 (make_resnet_reference.py). The batches are chosen so
// that no input of a ReLU is close to zero. The error of torch itself in float32 is then up
// to 1.2e-5 of the norm for gradients, 1.5e-6 for logits and 2e-7 for statistics (stored in the
// file as "float32"). The tolerances are 30 to 100 times these errors. So another order of
// summation passes; a wrong epsilon, momentum, stride or a biased variance fails.
//
// oneDNN's rounding depends on its version, the processor and the number of threads. So in one of
// the three batches a ReLU may still flip, which changes some gradients by a few percent. This is
// allowed for one case, not for two. (With AVX-512, AVX2 and SSE4.1 no ReLU flips.)
#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <string>

#include "tensor/network.h"
#include "test/support/catch.h"
#include "test/train/models/reference_checks.h"
#include "train/models/model.h"

namespace kolo::train {
namespace {

constexpr double kOneReluFlipped = 0.1;
constexpr double kStatisticsTolerance = 2e-5;

std::unique_ptr<tensor::Network> reference_network(const std::string& name,
                                                   const ReferenceCase& one,
                                                   const std::string& backend) {
  auto network = train::make_network(
      name,
      {.image = {one.side, one.side, one.channels}, .classes = 10, .stem = stem_from(one.stem)},
      tensor::make_backend(backend, 2), 1);
  tensor::Parameters& list = network->parameters();
  import_reference(list);
  std::uint64_t norm = 0;
  for (const tensor::Buffer& buffer : list.buffer_list()) {
    const bool is_mean = buffer.name.ends_with("running_mean"),
               is_variance = buffer.name.ends_with("running_var");
    if (!is_mean && !is_variance) continue;
    const std::vector<float> values =
        is_mean ? reference_values(1001 + norm, buffer.range.count, 0.125f, 0)
                : reference_values(2001 + norm, buffer.range.count, 0.5f, 1);
    if (is_variance) ++norm;
    std::copy(values.begin(), values.end(), list.buffers().begin() + buffer.range.begin);
  }
  return network;
}

Worst worst_statistic(const ReferenceCase& one, const tensor::Parameters& parameters) {
  Worst worst;
  for (const tensor::Buffer& buffer : parameters.buffer_list()) {
    const auto values = parameters.buffers().subspan(static_cast<std::size_t>(buffer.range.begin),
                                                     static_cast<std::size_t>(buffer.range.count));
    if (buffer.name.ends_with("num_batches_tracked")) {
      CHECK(values[0] == 1);
    } else {
      worst.take(deviation(values, one.answers.at({"buffer", buffer.name})), buffer.name);
    }
  }
  return worst;
}

// Checks everything except the gradients; returns the distance of the gradients.
Worst check_case(const std::string& name, const ReferenceCase& one, const std::string& backend) {
  CAPTURE(name, one.name, backend);
  const std::unique_ptr<tensor::Network> network = reference_network(name, one, backend);
  check_passes(*network, one);
  const Worst statistic = worst_statistic(one, network->parameters());
  INFO("farthest statistic: " << statistic.where);
  CHECK(statistic.deviation < kStatisticsTolerance);
  return worst_gradient(one, network->parameters());
}

void check_model(const std::string& name, std::int64_t total) {
  const ReferenceFile reference = read_reference(name);
  tensor::Parameters parameters;
  make_model(name, parameters, {.image = {224, 224, 3}, .classes = 1000});
  CHECK(reference.total == total);
  check_parameters(parameters, reference);
  REQUIRE(parameters.buffer_list().size() == reference.state.size());
  for (std::size_t i = 0; i < reference.state.size(); ++i) {
    CHECK(parameters.buffer_list()[i].name == reference.state[i].first);
    const bool is_scalar = reference.state[i].second.empty();
    CHECK(parameters.buffer_list()[i].shape.count() ==
          (is_scalar ? 1 : reference.state[i].second[0]));
  }
}

TEST_CASE("residual networks have torchvision's parameters and buffers, in its order") {
  check_model("resnet18", 11'689'512);
  check_model("resnet50", 25'557'032);
}

TEST_CASE("deeper residual networks have the number of parameters of torchvision's") {
  const auto count = [](const std::string& name) {
    tensor::Parameters parameters;
    make_model(name, parameters, {.image = {224, 224, 3}, .classes = 1000});
    return parameters.count();
  };
  CHECK(count("resnet34") == 21'797'672);
  CHECK(count("resnet101") == 44'549'160);
}

TEST_CASE("resnet18 gives torchvision's results with every backend") {
  const ReferenceFile reference = read_reference("resnet18");
  REQUIRE(reference.cases.size() == 1);
  for (const std::string& backend : tensor::backend_names()) {
    const Worst gradient = check_case("resnet18", reference.cases[0], backend);
    INFO("farthest gradient: " << gradient.where);
    CHECK(gradient.deviation < kGradientTolerance);
  }
}

TEST_CASE("resnet50 gives torchvision's results with the onednn backend") {
  if (!has_backend("onednn")) {
    WARN("skipped: this build has no onednn backend (libdnnl-dev)");
    return;
  }
  int exact = 0;
  for (const ReferenceCase& one : read_reference("resnet50").cases) {
    const Worst gradient = check_case("resnet50", one, "onednn");
    INFO(one.name << ": farthest gradient: " << gradient.where);
    CHECK(gradient.deviation < kOneReluFlipped);
    if (gradient.deviation < kGradientTolerance) ++exact;
  }
  CHECK(exact >= 2);
}

TEST_CASE("resnet50 gives torchvision's results with the reference backend") {
  const ReferenceFile reference = read_reference("resnet50");
  REQUIRE(reference.cases.size() == 3);
  const Worst gradient = check_case("resnet50", reference.cases[0], "reference");
  INFO("farthest gradient: " << gradient.where);
  CHECK(gradient.deviation < kGradientTolerance);
}

}  // namespace
}  // namespace kolo::train
