// Shares of any length, and messages: received data equal sent data. Counts that differ between two
// ranks are an error on all ranks, not a hang.
#include <chrono>
#include <cstdint>
#include <numeric>
#include <span>

#include <string>
#include <vector>

#include "test/collectives/support/ranks.h"
#include "test/support/catch.h"

namespace kolo::test {
namespace {

using namespace std::chrono_literals;
using Lengths = std::vector<std::size_t>;
using Data = std::vector<std::int32_t>;
constexpr auto kInt = ElementType::kInt32;

// The number of elements from rank `from` for rank `to`: none, a few, or several segments,
// depending on `round`.
std::size_t length_of(int from, int to, int round) {
  const int kind = (from * 5 + to * 3 + round) % 4;
  return kind == 0 ? 0 : kind == 1 ? 3 : kind == 2 ? 257 : 1000 + static_cast<std::size_t>(from);
}

std::int32_t value_of(int from, int to, std::size_t index) {
  return from * 100'000 + to * 10'000 + static_cast<std::int32_t>(index % 9973);
}

Data share(int from, int to, int round) {
  Data data(length_of(from, to, round));
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = value_of(from, to, i);
  return data;
}

// The concatenated shares of several ranks.
template <typename Share>
Data in_a_row(int size, const Share& share_of) {
  Data all;
  for (int rank = 0; rank < size; ++rank) {
    const Data part = share_of(rank);
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

template <typename Length>
Lengths lengths(int size, const Length& length) {
  Lengths all;
  for (int rank = 0; rank < size; ++rank) all.push_back(length(rank));
  return all;
}

std::span<std::int32_t> part(Data& data, std::size_t begin, std::size_t count) {
  return std::span(data).subspan(begin, count);
}

CommunicatorOptions short_segments() {
  CommunicatorOptions options;
  options.segment_bytes = 256;
  return options;
}

void run_rounds(const std::function<void(Communicator&, int round)>& body) {
  const auto transport = GENERATE(from_range(transports_under_test()));
  const auto size = GENERATE(1, 2, 3, 5);
  run_ranks(
      size, transport,
      [&](Communicator& communicator) {
        for (int round = 0; round < 4; ++round) body(communicator, round);
      },
      short_segments());
}

}  // namespace

TEST_CASE("all_gather_v concatenates shares of any length on every rank") {
  run_rounds([](Communicator& communicator, int round) {
    const int size = communicator.size();
    const auto counts = lengths(size, [&](int rank) { return length_of(rank, 0, round); });
    const Data in = share(communicator.rank(), 0, round);
    const Data expected = in_a_row(size, [&](int rank) { return share(rank, 0, round); });
    Data out(expected.size());
    communicator.all_gather_v(in, out, counts);
    expect(out == expected, "all_gather_v, round " + std::to_string(round));
  });
}

TEST_CASE("reduce_scatter_v reduces shares of any length") {
  run_rounds([](Communicator& communicator, int round) {
    const int size = communicator.size();
    const int rank = communicator.rank();
    const auto counts = lengths(size, [&](int to) { return length_of(to, 1, round); });
    Data in(std::accumulate(counts.begin(), counts.end(), std::size_t{0}));
    std::iota(in.begin(), in.end(), rank);
    Data out(counts[static_cast<std::size_t>(rank)]);
    communicator.reduce_scatter_v(in, out, counts);
    const std::size_t first =
        std::accumulate(counts.begin(), counts.begin() + rank, std::size_t{0});
    for (std::size_t i = 0; i < out.size(); ++i) {
      const auto index = static_cast<std::int32_t>(first + i);
      expect(out[i] == size * index + size * (size - 1) / 2, "reduce_scatter_v");
    }
  });
}

TEST_CASE("gather_v and scatter_v need the counts at the root only") {
  run_rounds([](Communicator& communicator, int round) {
    const int size = communicator.size();
    const int rank = communicator.rank();
    for (int root = 0; root < size; ++root) {
      const bool is_root = rank == root;
      const auto counts =
          is_root ? lengths(size, [&](int r) { return length_of(r, root, round); }) : Lengths{};
      const Data mine = share(rank, root, round);
      const Data all =
          is_root ? in_a_row(size, [&](int from) { return share(from, root, round); }) : Data{};
      Data gathered(all.size());
      communicator.gather_v(mine, gathered, counts, root);
      expect(gathered == all, "gather_v to root " + std::to_string(root));
      Data scattered(mine.size());
      communicator.scatter_v(all, scattered, counts, root);
      expect(scattered == mine, "scatter_v from root " + std::to_string(root));
    }
  });
}

TEST_CASE("all_to_all_v gives every rank its share of each rank") {
  run_rounds([](Communicator& communicator, int round) {
    const int size = communicator.size();
    const int rank = communicator.rank();
    const auto gives = lengths(size, [&](int to) { return length_of(rank, to, round); });
    const auto gets = lengths(size, [&](int from) { return length_of(from, rank, round); });
    const Data in = in_a_row(size, [&](int to) { return share(rank, to, round); });
    const Data expected = in_a_row(size, [&](int from) { return share(from, rank, round); });
    Data out(expected.size());
    communicator.all_to_all_v(in, gives, out, gets);
    expect(out == expected, "all_to_all_v, round " + std::to_string(round));
  });
}

TEST_CASE("messages go between two ranks while the others run something else") {
  const auto transport = GENERATE(from_range(transports_under_test()));
  run_ranks(
      3, transport,
      [](Communicator& communicator) {
        const int rank = communicator.rank();
        for (int round = 0; round < 4; ++round) {
          if (rank < 2) {
            const Data mine = share(rank, 1 - rank, round);
            Data theirs(length_of(1 - rank, rank, round));
            const auto send = [&] { communicator.send(mine, 1 - rank); };
            if (rank == 0) send();
            communicator.receive(theirs, 1 - rank);
            if (rank == 1) send();
            expect(theirs == share(1 - rank, rank, round), "message " + std::to_string(round));
          }
          std::int32_t sum = rank;
          communicator.all_reduce({&sum, 1, kInt}, ReduceOp::kSum);
          expect(sum == 3, "all_reduce after messages");
        }
      },
      short_segments());
}

namespace {

using Calls = void (*)(Communicator&, Data&);

struct Difference {
  const char* name;
  Calls of_rank_0;
  Calls of_others;
  const char* said;
};

const Difference kDifferences[] = {
    {"gather_v: another count than the root's",
     [](Communicator& c, Data& data) {
       c.gather_v(part(data, 0, 8), part(data, 100, 13), Lengths{8, 5});
     },
     [](Communicator& c, Data& data) { c.gather_v(part(data, 0, 6), {}, {}); },
     "gather #0 of 6 int32 to root 0"},
    {"scatter_v: another count than the root's",
     [](Communicator& c, Data& data) {
       c.scatter_v(part(data, 0, 402), part(data, 500, 2), Lengths{2, 400});
     },
     [](Communicator& c, Data& data) { c.scatter_v({}, part(data, 0, 300), {}); },
     "scatter #0 of 300 int32 from root 0"},
    {"all_to_all_v: one gives more than the other takes",
     [](Communicator& c, Data& data) {
       c.all_to_all_v(part(data, 0, 8), Lengths{1, 7}, part(data, 100, 3), Lengths{1, 2});
     },
     [](Communicator& c, Data& data) {
       c.all_to_all_v(part(data, 0, 3), Lengths{2, 1}, part(data, 100, 9), Lengths{8, 1});
     },
     "all_to_all #0 of 8 int32"},
    {"all_gather_v: the same sum, other counts",
     [](Communicator& c, Data& data) {
       c.all_gather_v(part(data, 0, 4), part(data, 100, 8), Lengths{4, 4});
     },
     [](Communicator& c, Data& data) {
       c.all_gather_v(part(data, 0, 5), part(data, 100, 8), Lengths{3, 5});
     },
     "with counts"},
    {"message: another length",
     [](Communicator& c, Data& data) {
       c.send({data.data(), 3, kInt}, 1);
     },
     [](Communicator& c, Data& data) {
       c.receive({data.data(), 4, kInt}, 0);
     },
     "message #0 of 4 int32"},
    {"message: a collective is called in its place",
     [](Communicator& c, Data& data) {
       c.send({data.data(), 3, kInt}, 1);
     },
     [](Communicator& c, Data& data) {
       c.broadcast({data.data(), 3, kInt}, 0);
     },
     "broadcast #0 of 3 int32 from root 0"},
};

}  // namespace

TEST_CASE("counts that differ between two ranks are an error on both") {
  for (const Difference& difference : kDifferences) {
    const auto transport = GENERATE(from_range(transports_under_test()));
    INFO(difference.name << " over " << transport);
    const auto outcomes = run_threads(2, [&](int rank, const std::shared_ptr<Store>& store) {
      CommunicatorOptions options = short_segments();
      options.transport = transport;
      options.timeout = 10s;
      Communicator communicator(rank, 2, store, options);
      Data data(2000);
      (rank == 0 ? difference.of_rank_0 : difference.of_others)(communicator, data);
      communicator.barrier();  // a rank that has only sent gets the error here
    });
    for (const RankOutcome& outcome : outcomes) {
      INFO(outcome.text);
      CHECK(outcome.code == ErrorCode::kMismatch);
      CHECK(outcome.text == outcomes.front().text);
      CHECK_THAT(outcome.text, ContainsSubstring(difference.said));
    }
  }
}

}  // namespace kolo::test
