#include "train/checkpoint/stage_tensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

namespace kolo::train {
namespace {

void send_number(Communicator& communicator, std::int64_t number, int to) {
  communicator.send(std::span<const std::int64_t>(&number, 1), to);
}

std::int64_t receive_number(Communicator& communicator, int from) {
  std::int64_t number = 0;
  communicator.receive(std::span(&number, 1), from);
  return number;
}

void send_text(Communicator& communicator, const std::string& text, int to) {
  send_number(communicator, static_cast<std::int64_t>(text.size()), to);
  if (!text.empty()) communicator.send(std::as_bytes(std::span(text)), to);
}

std::string receive_text(Communicator& communicator, int from) {
  std::string text(static_cast<std::size_t>(receive_number(communicator, from)), ' ');
  if (!text.empty()) communicator.receive(std::as_writable_bytes(std::span(text)), from);
  return text;
}

// Rank 0 reads for another rank, until its empty name.
void serve_reader(Communicator& communicator, SafetensorsFile& file, int rank) {
  std::vector<float> elements;
  for (;;) {
    const std::string name = receive_text(communicator, rank);
    if (name.empty()) return;
    elements.resize(static_cast<std::size_t>(receive_number(communicator, rank)));
    const bool is_there = reader_of(file)(name, elements);
    send_number(communicator, is_there ? 1 : 0, rank);
    if (is_there) communicator.send(std::span<const float>(elements), rank);
  }
}

bool read_through_rank_0(Communicator& communicator, const std::string& name,
                         std::span<float> elements) {
  send_text(communicator, name, 0);
  send_number(communicator, static_cast<std::int64_t>(elements.size()), 0);
  if (receive_number(communicator, 0) == 0) return false;
  communicator.receive(elements, 0);
  return true;
}

}  // namespace

std::vector<TensorSource> collect_tensors(Communicator& communicator, const PipelinePlace& place,
                                          std::vector<TensorSource> mine) {
  if (!place.is_first()) {
    nlohmann::json list = nlohmann::json::array();
    for (const TensorSource& tensor : mine)
      list.push_back({tensor.name, tensor.shape, bool(tensor.fill), tensor.number});
    send_text(communicator, list.dump(), 0);
    std::vector<float> elements;
    for (const TensorSource& tensor : mine) {
      if (!tensor.fill) continue;
      elements.resize(elements_of(tensor));
      tensor.fill(elements);
      communicator.send(std::span<const float>(elements), 0);
    }
    return {};
  }
  for (int stage = 1; stage < place.stages; ++stage) {
    for (const nlohmann::json& one : nlohmann::json::parse(receive_text(communicator, stage))) {
      TensorSource tensor{one[0], one[1], {}, one[3]};
      if (one[2].get<bool>())
        tensor.fill = [&communicator, stage](std::span<float> out) {
          communicator.receive(out, stage);
        };
      mine.push_back(std::move(tensor));
    }
  }
  // Numbers of 8 bytes (without `fill`) first, so that they are aligned.
  std::ranges::stable_partition(mine, [](const TensorSource& tensor) { return !tensor.fill; });
  return mine;
}

void read_for_all(Communicator& communicator, SafetensorsFile* file,
                  const std::function<void(const TensorReader&)>& use) {
  if (file == nullptr) {
    use([&](const std::string& name, std::span<float> elements) {
      return read_through_rank_0(communicator, name, elements);
    });
    return send_text(communicator, "", 0);
  }
  use(reader_of(*file));
  for (int rank = 1; rank < communicator.size(); ++rank) serve_reader(communicator, *file, rank);
}

}  // namespace kolo::train
