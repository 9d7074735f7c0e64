#include "train/inference/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>

#include "collectives/communicator.h"
#include "train/count_text.h"
#include "train/data/image/resize.h"
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
  const auto saved = saved_image(o);
  const int side = saved && saved->height == saved->width ? saved->height : 0;
  const auto data = open_dataset(o.dataset, Split::test, {o.seed, 0, o.test_size, side});
  SavedModel model = load_model(o, data->shape());
  if (model.image != data->shape() || model.classes != data->classes())
    throw DataError(fmt::format(
        "--load: {}: the model was trained on images of {} in {} classes, and {} has {} in {}",
        o.load, size_text(model.image), model.classes, data->description(),
        size_text(data->shape()), data->classes()));
  Communicator alone(0, 1, make_local_store(), {.transport = "inproc"});
  const BatchPlan plan(data->size(), o.batch_size, 1);
  const Score score =
      evaluate(alone, model.network.get(), data.get(), plan, 1, model.normalization);
  return fmt::format("{} on {}: accuracy {:.2f} % of {}, loss {:.6f}\n", model.name,
                     data->description(), 100 * score.accuracy, count_text(score.samples, "sample"),
                     score.loss);
}

std::vector<float> normalised(const std::vector<std::uint8_t>& pixels, std::size_t channels,
                              const Normalization& constants) {
  std::vector<float> values;
  for (std::size_t i = 0; i < pixels.size(); ++i) {
    const auto pixel = static_cast<float>(pixels[i]);
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

// The picture in the size of the model: as imagefolder resizes, if the model takes squares.
Image fitted(Image picture, const std::string& name, const ImageShape& size) {
  if (picture.height == size.height && picture.width == size.width) return picture;
  if (size.height == size.width) return middle_square(std::move(picture), size.height);
  throw DataError(fmt::format("{}: it has {} x {} pixels, and the model takes {} x {}", name,
                              picture.width, picture.height, size.width, size.height));
}

std::string predict_images(const InferenceOptions& o) {
  std::vector<Image> pictures;
  for (const std::string& path : o.images) pictures.push_back(read_picture(path));
  SavedModel model = load_model(o, {pictures.front().height, pictures.front().width, 3});
  std::string text;
  for (std::size_t i = 0; i < pictures.size(); ++i) {
    const Image picture = fitted(std::move(pictures[i]), o.images[i], model.image);
    const std::vector<float> values =
        normalised(pixels_with_channels(picture, model.image.channels),
                   static_cast<std::size_t>(model.image.channels), model.normalization);
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
