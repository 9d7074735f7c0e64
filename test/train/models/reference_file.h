// Reads the reference values of a model, and repeats the formulas of model_reference.py.
#pragma once

#include <cmath>
#include <cstdint>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "tensor/arena.h"

namespace kolo::train {

// One model and batch, with torch's results by (word, name): ("gradient", "fc.bias"), ("logits",
// "training").
struct ReferenceCase {
  std::string name, stem;
  int batch = 0, side = 0, channels = 0;
  std::uint32_t images_ordinal = 0;
  std::map<std::pair<std::string, std::string>, std::vector<double>> answers;
};

struct ReferenceFile {
  std::int64_t total = 0;
  std::vector<std::pair<std::string, std::vector<std::int64_t>>> parameters, state;
  std::vector<ReferenceCase> cases;
};

// Reads MODEL_reference.txt.
inline ReferenceFile read_reference(const std::string& model) {
  ReferenceFile result;
  std::ifstream file(KOLO_SOURCE_DIR "/test/train/models/" + model + "_reference.txt");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string word, name;
    words >> word;
    if (word == "total") {
      words >> result.total;
    } else if (word == "case") {
      ReferenceCase& one = result.cases.emplace_back();
      words >> one.name >> one.batch >> one.side >> one.channels >> one.images_ordinal >> one.stem;
    } else if (word == "parameter" || word == "state") {
      words >> name;
      auto& entry = (word == "state" ? result.state : result.parameters).emplace_back(name, 0);
      for (std::int64_t size = 0; words >> size;) entry.second.push_back(size);
    } else if (!word.empty() && word != "#") {
      words >> name;
      std::vector<double>& numbers = result.cases.back().answers[{word, name}];
      for (double number = 0; words >> number;) numbers.push_back(number);
    }
  }
  return result;
}

// `count` numbers in [-1, 1); same as `uniform` of the script.
inline std::vector<float> reference_uniform(std::uint64_t ordinal, std::int64_t count) {
  std::vector<float> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::uint64_t z = (ordinal << 32) + i;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    z ^= z >> 31;
    values[i] = static_cast<float>(static_cast<std::int64_t>(z >> 40) - (1 << 23)) /
                static_cast<float>(1 << 23);
  }
  return values;
}

// offset + scale * uniform, the script's formula for parameters and statistics.
inline std::vector<float> reference_values(std::uint64_t ordinal, std::int64_t count, float scale,
                                           float offset) {
  std::vector<float> values = reference_uniform(ordinal, count);
  for (float& value : values) {
    value *= scale;
    value += offset;
  }
  return values;
}

// Same as parameter_values of the script.
inline std::vector<float> reference_parameter(std::uint64_t ordinal,
                                              const tensor::Parameter& parameter) {
  const tensor::Shape& shape = parameter.shape;
  float scale = 0.125f;
  if (shape.rank() == 4) {
    scale =
        static_cast<float>(std::sqrt(6.0 / static_cast<double>(shape[1] * shape[2] * shape[3])));
  } else if (shape.rank() == 2) {
    scale = static_cast<float>(std::sqrt(1.0 / static_cast<double>(shape[1])));
  } else if (!parameter.name.starts_with("fc") && !parameter.name.starts_with("conv")) {
    const float middle = parameter.name.find("bn3") != std::string::npos ? 0.25f : 0.75f;
    if (!parameter.name.ends_with(".bias"))
      return reference_values(1 + ordinal, shape.count(), scale, middle);
    std::vector<float> values = reference_uniform(1 + ordinal, shape.count());
    for (float& value : values) value = (value < 0 ? -2.5f : 2.5f) * middle + scale * value;
    return values;
  }
  return reference_values(1 + ordinal, shape.count(), scale, 0);
}

}  // namespace kolo::train
