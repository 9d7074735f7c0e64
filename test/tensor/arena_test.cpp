// Tests of the arena: order, names, import and export, initial values.

#include <algorithm>
#include <cmath>
#include <numeric>

#include "test/support/catch.h"
#include "test/tensor/small_models.h"

namespace kolo::tensor::test {

namespace {

SmallModel norm_model() { return normalized("norm, addition and relu", {4, 3, 3}, 16, true); }

std::vector<float> values_of(const Parameters& p, const std::string& name) {
  const ParameterId id = p.find(name);
  std::vector<float> values(
      static_cast<std::size_t>(p.list()[static_cast<std::size_t>(id)].range.count));
  p.export_values(id, values);
  return values;
}

}  // namespace

TEST_CASE("parameters lie in the reverse order of their use, aligned and without overlap") {
  const Network network = make_network(norm_model(), "reference");
  const Parameters& p = network.parameters();
  std::vector<std::string> names;
  std::int64_t end = 0;
  for (const ParameterId id : p.arena_order()) {
    const Parameter& parameter = p.list()[static_cast<std::size_t>(id)];
    names.push_back(parameter.name);
    CHECK(parameter.range.begin % 16 == 0);
    CHECK(parameter.range.begin >= end);
    CHECK(parameter.range.begin < end + 16);
    CHECK(parameter.range.count == parameter.shape.count());
    end = parameter.range.end();
  }
  CHECK(names == std::vector<std::string>{"last.bias", "last.weight", "second_norm.bias",
                                          "second_norm.weight", "second.weight", "first_norm.bias",
                                          "first_norm.weight", "first.weight"});
  CHECK(p.values().size() == p.gradients().size());
  CHECK(static_cast<std::int64_t>(p.values().size()) >= end);
  CHECK(p.count() == 3 * 9 * 16 + 16 * 9 * 16 + 4 * 16 + 16 * 12 * kClasses + kClasses);
}

TEST_CASE("layers register the names and shapes of torchvision") {
  const Network network = make_network(norm_model(), "reference");
  const Parameters& p = network.parameters();
  CHECK(p.list()[0].name == "first.weight");
  CHECK(p.list()[0].shape == Shape{16, 3, 3, 3});
  CHECK(p.list().back().name == "last.bias");
  std::vector<std::string> buffers;
  for (const Buffer& buffer : p.buffer_list()) buffers.push_back(buffer.name);
  CHECK(buffers == std::vector<std::string>{"first_norm.running_mean", "first_norm.running_var",
                                            "first_norm.num_batches_tracked",
                                            "second_norm.running_mean", "second_norm.running_var",
                                            "second_norm.num_batches_tracked"});
  CHECK_THROWS_WITH(p.find("third.weight"), "the model has no parameter named third.weight");
}

TEST_CASE("values imported in torchvision's order are exported unchanged") {
  Network network = make_network(norm_model(), "reference");
  Parameters& p = network.parameters();
  const ParameterId id = p.find("second.weight");
  std::vector<float> numbers(static_cast<std::size_t>(16 * 16 * 9));
  std::iota(numbers.begin(), numbers.end(), 0.0F);
  p.import_values(id, numbers);
  CHECK(values_of(p, "second.weight") == numbers);
  // Output 5, input 3, row 1, column 2: tap 5 of HWIO.
  CHECK(p.value(id)[(5 * 16 + 3) * 16 + 5] == numbers[((5 * 16 + 3) * 3 + 1) * 3 + 2]);
  CHECK_THROWS_AS(p.import_values(id, std::vector<float>(7)), std::invalid_argument);
  CHECK_THROWS_AS(p.export_values(id, std::span<float>()), std::invalid_argument);
}

TEST_CASE("initial values depend on seed and name alone, and have the right spread") {
  const Network first = make_network(norm_model(), "reference", 1, 7);
  const Network second = make_network(norm_model(), backend_names().front(), 1, 7);
  const Network other = make_network(norm_model(), "reference", 1, 8);
  const auto weight = values_of(first.parameters(), "second.weight");
  CHECK(weight == values_of(second.parameters(), "second.weight"));
  CHECK(weight != values_of(other.parameters(), "second.weight"));
  // Exact numbers, to detect a platform with other results.
  CHECK(weight[0] == 0x1.079a8p-6F);
  CHECK(weight[1] == 0x1.8bebbep-6F);
  double square = 0;
  for (const float w : weight) square += static_cast<double>(w) * static_cast<double>(w);
  CHECK(std::sqrt(square / static_cast<double>(weight.size())) ==
        Approx(std::sqrt(2.0 / (16 * 9))).epsilon(0.05));
  const auto last = values_of(first.parameters(), "last.weight");
  const float bound = 1 / std::sqrt(16.0F * 12);
  CHECK(std::ranges::all_of(last, [=](float w) { return std::abs(w) <= bound; }));
  CHECK(std::ranges::max(last) > 0.95F * bound);
  CHECK(values_of(first.parameters(), "first_norm.weight") == std::vector<float>(16, 1.0F));
  CHECK(values_of(first.parameters(), "first_norm.bias") == std::vector<float>(16, 0.0F));
}

TEST_CASE("a model that omits or repeats a parameter gets an error with its name") {
  const auto with = [](const Recipe& recipe) {
    return make_network({"broken", {4, 4, 3}, recipe}, "reference");
  };
  CHECK_THROWS_WITH(with([](Parameters& p) -> FunctionModel::Forward {
                      const Linear last(p, "last", 48, kClasses);
                      const Linear lost(p, "lost", 48, kClasses);
                      return [=](Tape& t, const Value& x) { return last(t, flatten(t, x)); };
                    }),
                    "lost.weight is registered but the model never uses it");
  CHECK_THROWS_WITH(with([](Parameters& p) -> FunctionModel::Forward {
                      const Conv2d same(p, "same", 3, 3, {1, 1, 0, false});
                      const Linear last(p, "last", 48, kClasses);
                      return [=](Tape& t, const Value& x) {
                        return last(t, flatten(t, same(t, same(t, x))));
                      };
                    }),
                    "same.weight is used twice in one forward pass; shared parameters are not "
                    "supported");
  CHECK_THROWS_WITH(with([](Parameters& p) -> FunctionModel::Forward {
                      const Linear one(p, "same", 48, kClasses);
                      const Linear two(p, "same", 48, kClasses);
                      return [=](Tape& t, const Value& x) { return one(t, flatten(t, x)); };
                    }),
                    "two parameters are named same.weight");
}

}  // namespace kolo::tensor::test
