#include "train/checkpoint/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <set>
#include <string_view>

#include "train/models/model.h"

namespace kolo::train {
namespace {

constexpr std::string_view kState = "optimizer.";
constexpr std::string_view kCounter = ".num_batches_tracked";

// Facts that a resumed run must share, and the flag that sets them.
struct SharedFact {
  const char* name;
  const char* flag;
  bool is_optional = false;  // missing in earlier files
};
constexpr std::array<SharedFact, 9> kShared{{{"model", "--model"},
                                             {"stem", "--stem"},
                                             {"dataset", "--dataset", true},
                                             {"image", "--dataset"},
                                             {"classes", "--dataset"},
                                             {"train_samples", "--train-size"},
                                             {"optimizer", "--optimizer"},
                                             {"seed", "--seed"},
                                             {"global_batch", "--global-batch"}}};

std::vector<std::int64_t> sides_of(const tensor::Shape& shape) {
  std::vector<std::int64_t> sides;
  for (int i = 0; i < shape.rank(); ++i) sides.push_back(shape[i]);
  return sides;
}

std::span<float> part(std::span<float> all, tensor::Range range) {
  return all.subspan(static_cast<std::size_t>(range.begin), static_cast<std::size_t>(range.count));
}

std::span<const float> part(std::span<const float> all, tensor::Range range) {
  return all.subspan(static_cast<std::size_t>(range.begin), static_cast<std::size_t>(range.count));
}

[[noreturn]] void refuse(const SafetensorsFile& file, const std::string& reason) {
  throw CheckpointError(fmt::format("{}: {}", file.path(), reason));
}

// A counter of a batch norm: a float in a buffer, a whole number in files.
bool is_counter(std::string_view name) { return name.ends_with(kCounter); }

void require_tensor(const SafetensorsFile& file, const std::string& name,
                    const tensor::Shape& shape, const std::string& model) {
  constexpr std::string_view kReadable[] = {"F32", "F64", "F16", "BF16"};
  if (is_counter(name) && (file.find(name) == nullptr || file.find(name)->dtype == "I64")) return;
  const StoredTensor* const found = file.find(name);
  if (found == nullptr)
    refuse(file, fmt::format("it has no tensor '{}', which the model {} has; it is of another "
                             "model",
                             name, model));
  if (found->shape != sides_of(shape))
    refuse(file, fmt::format("'{}' has the shape {}, and in the model {} it has {}; it is of "
                             "another model, or of data with other classes",
                             name, shape_text(found->shape), model, shape_text(sides_of(shape))));
  if (std::ranges::find(kReadable, found->dtype) == std::end(kReadable))
    refuse(file,
           fmt::format("'{}' is {}; expected one of F32, F64, F16, BF16", name, found->dtype));
}

// The counters first: whole numbers of 8 bytes are then aligned.
std::vector<TensorSource> counters(const tensor::Parameters& parameters) {
  std::vector<TensorSource> tensors;
  for (const tensor::Buffer& buffer : parameters.buffer_list()) {
    if (!is_counter(buffer.name)) continue;
    const float count = part(parameters.buffers(), buffer.range)[0];
    tensors.push_back({buffer.name, {}, {}, static_cast<std::int64_t>(count)});
  }
  return tensors;
}

// The state in "optimizer.STATE.PARAMETER", "momentum" or "rank1.momentum"; empty if the name is
// not of that form. Names of parameters have dots, too: conv1.weight ends layer1.0.conv1.weight.
std::string state_of(const std::string& name, const std::string& parameter) {
  const std::size_t rest = kState.size() + 1 + parameter.size();
  if (!name.starts_with(kState) || name.size() <= rest || !name.ends_with("." + parameter))
    return "";
  std::string state = name.substr(kState.size(), name.size() - rest);
  const std::size_t dot = state.find('.');
  const bool is_of_rank = state.starts_with("rank") && dot != std::string::npos &&
                          state.find('.', dot + 1) == std::string::npos;
  return dot == std::string::npos || is_of_rank ? state : "";
}

std::string name_of(const std::string& state, const tensor::Parameter& parameter) {
  return fmt::format("{}{}.{}", kState, state, parameter.name);
}

bool is_known(const std::string& name, const tensor::Parameters& parameters) {
  const auto has_name = [&](const auto& one) { return one.name == name; };
  return name.starts_with(kState) || is_counter(name) ||
         std::ranges::any_of(parameters.list(), has_name) ||
         std::ranges::any_of(parameters.buffer_list(), has_name);
}

}  // namespace

RunFacts facts_of(const Options& options, const Dataset& data) {
  const ImageShape image = data.shape();
  RunFacts facts{{"format", "pt"},  // tools that read checkpoints of PyTorch ask for it
                 {"model", options.model},
                 {"dataset", options.dataset.substr(0, options.dataset.find(':'))},
                 {"image", fmt::format("{}x{}x{}", image.height, image.width, image.channels)},
                 {"classes", fmt::format("{}", data.classes())},
                 {"train_samples", fmt::format("{}", data.size())},
                 {"optimizer", options.optimizer},
                 {"seed", fmt::format("{}", options.seed)},
                 {"global_batch", fmt::format("{}", options.samples_per_iteration())},
                 {"ranks", fmt::format("{}", options.ranks)},
                 {"strategy", options.arms.front().name()},
                 {"lr", fmt::format("{}", options.lr)},
                 {"lr_batch", fmt::format("{}", options.lr_batch)},
                 {"lr_schedule", options.lr_schedule},
                 {"warmup_epochs", fmt::format("{}", options.warmup_epochs)},
                 {"order_of_data", "a function of seed and epoch"}};
  if (has_stem(options.model)) facts["stem"] = options.stem;
  const Normalization constants = data.normalization();
  for (int i = 0; i < image.channels; ++i) {
    const auto channel = static_cast<std::size_t>(i);
    const std::string separator = i > 0 ? "," : "";
    facts["mean"] += fmt::format("{}{}", separator, constants.mean[channel]);
    facts["deviation"] += fmt::format("{}{}", separator, constants.deviation[channel]);
  }
  return facts;
}

std::vector<TensorSource> tensors_of(tensor::Parameters& parameters, const ArenaState& state) {
  std::vector<TensorSource> tensors = counters(parameters);
  const auto count = static_cast<tensor::ParameterId>(parameters.list().size());
  for (tensor::ParameterId id = 0; id < count; ++id) {
    const tensor::Parameter& parameter = parameters.list()[static_cast<std::size_t>(id)];
    tensors.push_back(
        {parameter.name, sides_of(parameter.shape),
         [&parameters, id](std::span<float> out) { parameters.export_values(id, out); }});
  }
  for (const tensor::Buffer& buffer : parameters.buffer_list()) {
    if (is_counter(buffer.name)) continue;
    tensors.push_back({buffer.name, sides_of(buffer.shape),
                       [&parameters, range = buffer.range](std::span<float> out) {
                         std::ranges::copy(part(parameters.buffers(), range), out.begin());
                       }});
  }
  for (const auto& [name, elements] : state) {
    for (tensor::ParameterId id = 0; id < count; ++id) {
      const tensor::Parameter& parameter = parameters.list()[static_cast<std::size_t>(id)];
      tensors.push_back(
          {name_of(name, parameter), sides_of(parameter.shape),
           [&parameters, &values = elements, id, range = parameter.range](std::span<float> out) {
             std::ranges::copy(part(std::span<const float>(values), range),
                               part(parameters.gradients(), range).begin());
             parameters.export_gradients(id, out);
           }});
    }
  }
  return tensors;
}

void write_checkpoint(const std::string& path, const RunFacts& facts, std::int64_t iteration,
                      std::span<const TensorSource> tensors) {
  RunFacts all = facts;
  all["iteration"] = fmt::format("{}", iteration);
  write_safetensors(path, all, tensors);
}

void require_parameters(const SafetensorsFile& file, const tensor::Parameters& parameters,
                        const std::string& model) {
  for (const tensor::Parameter& one : parameters.list())
    require_tensor(file, one.name, one.shape, model);
  for (const tensor::Buffer& one : parameters.buffer_list())
    require_tensor(file, one.name, one.shape, model);
  for (const StoredTensor& tensor : file.tensors()) {
    if (is_known(tensor.name, parameters)) continue;
    refuse(file, fmt::format("it has a tensor '{}', which the model {} does not have; it is of "
                             "another model",
                             tensor.name, model));
  }
}

TensorReader reader_of(SafetensorsFile& file) {
  return [&file](const std::string& name, std::span<float> elements) {
    const StoredTensor* const stored = file.find(name);
    if (stored != nullptr) file.read(*stored, elements);
    return stored != nullptr;
  };
}

void read_parameters(const TensorReader& read, tensor::Parameters& parameters) {
  std::vector<float> elements;
  const auto count = static_cast<tensor::ParameterId>(parameters.list().size());
  for (tensor::ParameterId id = 0; id < count; ++id) {
    const tensor::Parameter& parameter = parameters.list()[static_cast<std::size_t>(id)];
    elements.resize(static_cast<std::size_t>(parameter.range.count));
    read(parameter.name, elements);
    parameters.import_values(id, elements);
  }
  for (const tensor::Buffer& buffer : parameters.buffer_list())
    read(buffer.name, part(parameters.buffers(), buffer.range));
}

std::vector<std::string> states_in(const SafetensorsFile& file,
                                   const tensor::Parameters& parameters) {
  std::set<std::string> names;
  for (const StoredTensor& tensor : file.tensors()) {
    for (const tensor::Parameter& parameter : parameters.list()) {
      std::string name = state_of(tensor.name, parameter.name);
      if (!name.empty()) names.insert(std::move(name));
    }
  }
  for (const std::string& name : names) {
    for (const tensor::Parameter& parameter : parameters.list()) {
      const std::string full = name_of(name, parameter);
      if (file.find(full) == nullptr)
        refuse(file, fmt::format("it has no tensor '{}', so it is incomplete", full));
      require_tensor(file, full, parameter.shape, "of this run");
    }
  }
  return {names.begin(), names.end()};
}

ArenaState read_state(const TensorReader& read, std::span<const std::string> names,
                      tensor::Parameters& parameters) {
  ArenaState state;
  std::vector<float> elements;
  const std::vector<float> kept(parameters.values().begin(), parameters.values().end());
  const auto count = static_cast<tensor::ParameterId>(parameters.list().size());
  for (const std::string& name : names) {
    std::vector<float>& arena = state[name];
    arena.resize(kept.size());
    for (tensor::ParameterId id = 0; id < count; ++id) {
      const tensor::Parameter& parameter = parameters.list()[static_cast<std::size_t>(id)];
      elements.resize(static_cast<std::size_t>(parameter.range.count));
      if (!read(name_of(name, parameter), elements))
        throw CheckpointError(fmt::format("the checkpoint has no '{}'", name_of(name, parameter)));
      parameters.import_values(id, elements);
      std::ranges::copy(part(parameters.values(), parameter.range),
                        part(std::span<float>(arena), parameter.range).begin());
    }
  }
  std::ranges::copy(kept, parameters.values().begin());
  return state;
}

void require_same_run(const SafetensorsFile& file, const RunFacts& facts) {
  iteration_of(file);
  for (const SharedFact& shared : kShared) {
    const auto here = facts.find(shared.name);
    const auto there = file.metadata().find(shared.name);
    if (here == facts.end()) continue;
    if (there == file.metadata().end() && shared.is_optional) continue;
    if (there == file.metadata().end())
      refuse(file, fmt::format("its metadata have no '{}'; it is no checkpoint of kolo-train; "
                               "--load starts from its weights",
                               shared.name));
    if (here->second == there->second) continue;
    refuse(file, fmt::format("it is of a run with {} {}, and this run has {}; change {}, or use "
                             "another checkpoint",
                             shared.name, there->second, here->second, shared.flag));
  }
}

std::int64_t iteration_of(const SafetensorsFile& file) {
  const auto found = file.metadata().find("iteration");
  std::int64_t iteration = -1;
  if (found != file.metadata().end()) {
    const char* const end = found->second.data() + found->second.size();
    const auto [stop, code] = std::from_chars(found->second.data(), end, iteration);
    if (code != std::errc{} || stop != end) iteration = -1;
  }
  if (iteration < 0)
    refuse(file,
           "its metadata have no number of iterations; it is no checkpoint of kolo-train; "
           "--load starts from its weights");
  return iteration;
}

}  // namespace kolo::train
