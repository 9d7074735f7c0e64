// Data-parallel training of a small CNN on MNIST. Prints the test accuracy after each epoch.
//
//   kolo-run -n 2 example_mnist mnist:DIR [EPOCHS [SAMPLES]]
// Without kolo-run it runs as one rank.
#include <iostream>
#include <string>

#include "train/data/loader.h"
#include "train/loop/evaluation.h"
#include "train/loop/gradient_reducer.h"
#include "train/models/model.h"
#include "train/optimizers/learning_rate.h"

using namespace kolo;
using namespace kolo::train;

int main(int argc, char** argv) try {
  const std::string name = argc > 1 ? argv[1] : "digits";  // built in, needs no files
  const std::int64_t epochs = argc > 2 ? std::stoi(argv[2]) : 3;
  const std::int64_t samples = argc > 3 ? std::stoi(argv[3]) : 0;  // 0: all
  auto world = Communicator::from_environment();
  const auto data = open_dataset(name, Split::train, {.train_size = samples});
  const auto test_data = open_dataset(name, Split::test);
  const BatchPlan plan(data->size(), 64 * world.size(), world.size());
  const BatchPlan test_plan(test_data->size(), 64 * world.size(), world.size());
  const auto [height, width, channels] = data->shape();
  const auto network = make_network("cnn", {.image = {height, width, channels}},
                                    tensor::make_backend(tensor::backend_names().front(), 1), 1);
  tensor::Parameters& parameters = network->parameters();
  world.broadcast(parameters.values());
  const StrategyContext context{world, parameters, world.size(), {}, plan_buckets(parameters)};
  const auto strategy = make_strategy(Arm{}, context);  // a ring; each rank runs SGD
  const auto reducer = make_reducer(Arm{}, *strategy, context);
  const auto end = plan.iterations_per_epoch() * epochs;
  const LearningRate rate({.global_batch = plan.global_batch(), .total_iterations = end});

  Loader loader(*data, plan, {.rank = world.rank(), .epochs = epochs});
  Minibatch batch;
  for (std::int64_t done = 0; loader.next(batch); ++done) {
    reducer->begin({rate.at(done), done + 1});
    if (batch.samples.empty()) {  // if the last batch has fewer samples than ranks
      reducer->all_zero();
    } else {
      network->forward({batch.images, batch.labels, static_cast<double>(batch.global_count)},
                       tensor::Mode::training);
      // Full buckets are exchanged while earlier layers compute.
      network->backward([&](tensor::ParameterId id) { reducer->gradient_ready(id); });
    }
    reducer->finish();  // waits for the sums of all ranks, and updates the parameters
    if (batch.iteration + 1 < plan.iterations_per_epoch()) continue;
    const Score score = evaluate(world, network.get(), test_data.get(), test_plan, 1);
    if (world.rank() == 0)
      std::cout << "epoch " << batch.epoch + 1 << ": test accuracy " << 100 * score.accuracy << " %"
                << std::endl;
  }
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
