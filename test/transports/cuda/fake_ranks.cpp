#include "test/transports/cuda/fake_ranks.h"

#include <exception>
#include <thread>
#include <utility>

namespace kolo::test {

namespace {

struct Made {
  std::vector<FakeRank> ranks;
  std::vector<std::exception_ptr> errors;
};

Made try_to_make(FakeMachine& machine, int size, const Adjust& adjust,
                 const std::shared_ptr<Store>& store) {
  const auto count = static_cast<std::size_t>(size);
  Made made{std::vector<FakeRank>(count), std::vector<std::exception_ptr>(count)};
  for (FakeRank& rank : made.ranks) rank.driver = machine.process();
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      const auto index = static_cast<std::size_t>(rank);
      try {
        TransportRequest request;
        request.rank = rank;
        request.size = size;
        request.store = store;
        request.deadline = Clock::now() + std::chrono::seconds(120);
        CudaIpcSettings settings = settings_for(made.ranks[index].driver, rank);
        if (adjust) adjust(rank, *made.ranks[index].driver, settings);
        made.ranks[index].transport = make_cuda_ipc(request, settings);
      } catch (...) {
        made.errors[index] = std::current_exception();
      }
    });
  }
  for (auto& thread : threads) thread.join();
  return made;
}

}  // namespace

CudaIpcSettings settings_for(const std::shared_ptr<FakeDriver>& driver, int rank) {
  CudaIpcSettings settings;
  settings.driver = driver;
  settings.device = 0;
  settings.segment_bytes = 4096;
  settings.process = "played " + std::to_string(rank);
  settings.patience = std::chrono::seconds(20);
  settings.make_host = [](const TransportRequest& request) {
    return make_transport("inproc", request);
  };
  return settings;
}

std::vector<FakeRank> make_fake_ranks(FakeMachine& machine, int size, const Adjust& adjust,
                                      const std::shared_ptr<Store>& store) {
  Made made = try_to_make(machine, size, adjust, store);
  for (const auto& error : made.errors) {
    if (error) std::rethrow_exception(error);
  }
  return std::move(made.ranks);
}

void close_together(std::vector<FakeRank>& ranks) {
  std::vector<std::thread> threads;
  for (FakeRank& rank : ranks) threads.emplace_back([&rank] { rank.transport.reset(); });
  for (auto& thread : threads) thread.join();
}

std::vector<std::string> errors_of(FakeMachine& machine, int size, const Adjust& adjust,
                                   std::shared_ptr<Store> store) {
  const Made made = try_to_make(machine, size, adjust, store);
  std::vector<std::string> texts;
  for (const auto& error : made.errors) {
    try {
      if (error) std::rethrow_exception(error);
      texts.emplace_back("no error");
    } catch (const std::exception& caught) {
      texts.emplace_back(caught.what());
    }
  }
  if (const std::string left = machine.left_over(); !left.empty()) texts.push_back(left);
  return texts;
}

}  // namespace kolo::test
