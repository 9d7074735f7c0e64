#include "train/inference/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>

#include "collectives/communicator.h"
#include "train/count_text.h"
#include "train/inference/picture_file.h"
#include "train/inference/saved_model.h"
#include "train/loop/evaluation.h"
#include "transports/rendezvous.h"

namespace kolo::train {
namespace {

constexpr std::size_t kShownClasses = 3;

std::string size_text(const ImageShape& image) {
  return fmt::format("{} x {} x {}", image.height, image.width, image.channels);
}

std::string evaluate_saved(const InferenceOptions& o) {
  const auto data = open_dataset(o.dataset, Split::test, {o.seed, 0, o.test_size});
  SavedModel model = load_model(o, data->shape());
  if (model.image != data->shape() || model.classes != data->classes())
    throw DataError(fmt::format(
        "--load: {}: the model was trained on images of {} in {} classes, and {} has {} in {}",
        o.load, size_text(model.image), model.classes, data->description(),
        size_text(data->shape()), data->classes()));
  Communicator alone(0, 1, make_local_store(), {.transport = "inproc"});
  const BatchPlan plan(data->size(), o.batch_size, 1);
  const Score score = evaluate(alone, model.network.get(), data.get(), plan);
  return fmt::format("{} on {}: accuracy {:.2f} % of {}, loss {:.6f}\n", model.name,
                     data->description(), 100 * score.accuracy, count_text(score.samples, "sample"),
                     score.loss);
}

std::vector<float> normalised(const Picture& picture, const Normalization& constants) {
  std::vector<float> values;
  const auto channels = static_cast<std::size_t>(picture.shape.channels);
  for (std::size_t i = 0; i < picture.pixels.size(); ++i) {
    const auto pixel = static_cast<float>(picture.pixels[i]);
    values.push_back((pixel - constants.mean[i % channels]) / constants.deviation[i % channels]);
  }
  return values;
}

// "class 3: 97.1 %, class 5: 2.0 %, ..."
std::string best_classes(std::span<const float> logits) {
  const double largest = *std::ranges::max_element(logits);
  double sum = 0;
  for (const float logit : logits) sum += std::exp(logit - largest);
  std::vector<std::size_t> order(logits.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, [&](auto a, auto b) { return logits[a] > logits[b]; });
  order.resize(std::min(order.size(), kShownClasses));
  std::string text;
  for (const std::size_t one : order)
    text += fmt::format("{}class {}: {:.2f} %", text.empty() ? "" : ", ", one,
                        100 * std::exp(logits[one] - largest) / sum);
  return text;
}

std::string predict_images(const InferenceOptions& o) {
  std::vector<Picture> pictures;
  for (const std::string& path : o.images) pictures.push_back(read_picture(path));
  ImageShape first = pictures.front().shape;
  first.channels = 3;
  SavedModel model = load_model(o, first);
  std::string text;
  for (std::size_t i = 0; i < pictures.size(); ++i) {
    const Picture picture = with_channels(pictures[i], model.image.channels);
    if (picture.shape != model.image)
      throw DataError(fmt::format("{}: it has {} x {} pixels, and the model takes {} x {}",
                                  o.images[i], picture.shape.width, picture.shape.height,
                                  model.image.width, model.image.height));
    const std::vector<float> values = normalised(picture, model.normalization);
    const std::int32_t no_label = 0;
    model.network->forward({values, {&no_label, 1}, 1.0}, tensor::Mode::evaluation);
    text += fmt::format("{}: {}\n", o.images[i], best_classes(model.network->logits()));
  }
  return text;
}

}  // namespace

std::string run_inference(const InferenceOptions& options) {
  return options.command == "evaluate" ? evaluate_saved(options) : predict_images(options);
}

}  // namespace kolo::train
