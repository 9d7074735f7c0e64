// Buffers of collectives: what two buffers or a list of counts state twice must agree.
#include <array>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "test/collectives/support/ranks.h"
#include "test/support/catch.h"

namespace kolo::test {
namespace {

constexpr std::size_t kCount = 10;  // chunks of 4, 3 and 3

float value(int rank, std::size_t index) {
  return static_cast<float>(100 * rank + static_cast<int>(index));
}

std::vector<float> filled(int rank, std::size_t count) {
  std::vector<float> data(count);
  for (std::size_t i = 0; i < count; ++i) data[i] = value(rank, i);
  return data;
}

std::string said_by(const std::function<void()>& call) {
  try {
    call();
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "nothing";
}

void expect_said(const std::function<void()>& call, const std::string& wanted) {
  const std::string said = said_by(call);
  expect(said.find(wanted) != std::string::npos, "expected '" + wanted + "', was told: " + said);
}

}  // namespace

TEST_CASE("a collective accepts spans of a chunk and of the whole") {
  const bool is_async = GENERATE(false, true);
  run_ranks(3, "inproc", [is_async](Communicator& world) {
    const std::size_t chunk = chunk_count(kCount, world.size(), world.rank());
    const std::vector<float> mine = filled(world.rank(), chunk);
    std::vector<float> all(kCount);
    std::vector<float> sums(chunk);
    if (is_async) {
      Work gather = world.all_gather_async(mine, std::span(all));
      gather.wait();
      world.reduce_scatter_async(all, std::span(sums), ReduceOp::kSum).wait();
    } else {
      world.all_gather(mine, std::span(all));
      world.reduce_scatter(all, std::span(sums));
    }
    std::size_t place = 0;
    for (int rank = 0; rank < world.size(); ++rank) {
      for (std::size_t i = 0; i < chunk_count(kCount, world.size(), rank); ++i)
        expect(all[place++] == value(rank, i), "a gathered element");
    }
    for (std::size_t i = 0; i < chunk; ++i)
      expect(sums[i] == 3 * value(world.rank(), i), "a sum of three alike");
  });
}

TEST_CASE("spans of reduce, all_to_all and messages receive the data of the others") {
  const bool is_async = GENERATE(false, true);
  run_ranks(3, "inproc", [is_async](Communicator& world) {
    const int rank = world.rank();
    std::vector<std::int32_t> data(kCount, rank + 1);
    world.reduce(std::span(data), 1);
    expect(data[0] == (rank == 1 ? 6 : rank + 1), "the root has the sum, the others theirs");

    const std::vector<float> out = filled(rank, 6);
    std::vector<float> in(6);
    if (is_async) {
      world.all_to_all_async(out, std::span(in)).wait();
    } else {
      world.all_to_all(out, std::span(in));
    }
    for (int from = 0; from < 3; ++from) {
      const auto first = static_cast<std::size_t>(2 * rank);
      expect(in[static_cast<std::size_t>(2 * from)] == value(from, first), "what a rank gave");
    }

    std::array<double, 2> passed{};
    const std::array<double, 2> own{1.5 * rank, 2.5};
    const int next = (rank + 1) % 3;
    const int before = (rank + 2) % 3;
    if (is_async) {
      Work got = world.receive_async(std::span(passed), before);
      world.send_async(std::span(own), next).wait();
      got.wait();
    } else {
      Work got = world.receive_async(std::span(passed), before);
      world.send(std::span(own), next);
      got.wait();
      world.send(std::span(own), next);
      world.receive(std::span(passed), before);
    }
    expect(passed[0] == 1.5 * before && passed[1] == 2.5, "what came round the ring");
  });
}

TEST_CASE("an error names a span with the wrong length before anything is sent") {
  run_ranks(3, "inproc", [](Communicator& world) {
    std::vector<float> all(kCount);
    std::vector<float> chunk(5);
    const std::string rank = std::to_string(world.rank());
    const std::string who = "rank " + rank + " of 3: its chunk of 10 elements has " +
                            (rank == "0" ? "4" : "3") +
                            ", but its buffer 5: pass chunk_count(10, 3, " + rank;
    expect_said([&] { world.all_gather(chunk, std::span(all)); }, "all_gather: rank " + rank);
    expect_said([&] { world.all_gather(chunk, std::span(all)); }, who);
    expect_said([&] { world.all_gather_async(chunk, std::span(all)); }, who);
    expect_said([&] { world.reduce_scatter(all, std::span(chunk)); }, "reduce_scatter: " + who);
    expect_said([&] { world.reduce_scatter_async(all, std::span(chunk)); }, who);
    expect_said([&] { world.all_to_all(chunk, std::span(all)); },
                "all_to_all: rank " + rank + " of 3: 'in' has 5 elements, but 'out' 10");
    expect_said([&] { world.all_to_all_async(chunk, std::span(all)); }, "use all_to_all_v");
    world.all_reduce(std::span(all));
  });
}

TEST_CASE("spans of scans receive the reduction of the ranks before") {
  const bool is_async = GENERATE(false, true);
  run_ranks(3, "inproc", [is_async](Communicator& world) {
    const int rank = world.rank();
    std::vector<std::int64_t> up_to(kCount, rank + 1);
    std::vector<std::int64_t> before(kCount, rank + 1);
    std::vector<std::int64_t> most(kCount, 5 - rank);
    if (is_async) {
      world.scan_async(std::span(up_to)).wait();
      world.exclusive_scan_async(std::span(before)).wait();
      world.reduce_async(std::span(most), 2, ReduceOp::kMax).wait();
    } else {
      world.scan(std::span(up_to));
      world.exclusive_scan(std::span(before));
      world.reduce(std::span(most), 2, ReduceOp::kMax);
    }
    expect(up_to.back() == (rank + 1) * (rank + 2) / 2, "1 + ... + rank + 1");
    expect(before.back() == (rank == 0 ? 1 : rank * (rank + 1) / 2), "the same without its own");
    expect(most.back() == (rank == 2 ? 5 : 5 - rank), "the root has the most, the others theirs");
  });
}

TEST_CASE("other ranks than the root state the length of what is gathered, without memory") {
  const bool is_async = GENERATE(false, true);
  const int root = GENERATE(0, 2);
  run_ranks(3, "inproc", [is_async, root](Communicator& world) {
    const int rank = world.rank();
    const std::size_t chunk = chunk_count(kCount, world.size(), rank);
    const std::vector<float> mine = filled(rank, chunk);
    std::vector<float> whole(rank == root ? kCount : 0);
    const Buffer all(rank == root ? whole.data() : nullptr, kCount, ElementType::kFloat32);
    std::vector<float> back(chunk);
    if (is_async) {
      world.gather_async(mine, all, root).wait();
      world.scatter_async(all, std::span(back), root).wait();
    } else {
      world.gather(mine, all, root);
      world.scatter(all, std::span(back), root);
    }
    std::size_t place = 0;
    for (int from = 0; from < world.size() && rank == root; ++from) {
      for (std::size_t i = 0; i < chunk_count(kCount, world.size(), from); ++i)
        expect(whole[place++] == value(from, i), "a gathered element");
    }
    expect(back == mine, "what was gathered comes back");
    if (rank == root) {  // in place, as with pointers
      const auto part = std::span(whole).subspan(chunk_begin(kCount, world.size(), rank), chunk);
      world.gather(part, all, root);
    } else {
      world.gather(mine, all, root);
    }
    expect(rank != root || whole.front() == value(0, 0), "a gathered element, in place");
  });
}

TEST_CASE("a gather or scatter of equal chunks needs the whole at the root only") {
  run_ranks(3, "inproc", [](Communicator& world) {
    const std::vector<float> mine = filled(world.rank(), 2);
    std::vector<float> all(world.rank() == 1 ? 6 : 0);
    std::vector<float> back(2);
    world.gather(mine, all, 1);
    expect(world.rank() != 1 || all[4] == value(2, 0), "a gathered element");
    world.scatter(all, back, 1);
    expect(back == mine, "what was gathered comes back");
  });
}

TEST_CASE("buffers of elements without an ElementType are for user functions of their length") {
  struct Pair {
    float key;
    float value;
  };
  run_ranks(2, "inproc", [](Communicator& world) {
    std::vector<Pair> pairs(3, {1, static_cast<float>(world.rank())});
    expect_said(
        [&] { world.all_reduce(pairs); },
        "all_reduce: elements of 8 bytes have no ElementType: pass a UserReduceOp for them");
    expect_said([&] { world.broadcast(pairs); },
                "broadcast: elements of 8 bytes have no ElementType: pass their bytes");
    const UserReduceOp most = make_user_reduce_op<Pair>(
        [](const Pair& one, const Pair& other) { return one.value < other.value ? other : one; });
    std::vector<float> floats(3);
    expect_said([&] { world.all_reduce(floats, most); },
                "the reducer is for elements of 8 bytes, but the buffer holds float32");
    world.all_reduce(pairs, most);
    expect(pairs[2].value == 1, "the greatest pair");
    world.broadcast(std::as_writable_bytes(std::span(pairs)), 1);
  });
}

TEST_CASE("buffers of two types, or of two lengths, are refused before anything is sent") {
  run_ranks(2, "inproc", [](Communicator& world) {
    std::vector<float> floats(4);
    std::vector<double> doubles(4);
    const std::string who = "rank " + std::to_string(world.rank()) + " of 2: ";
    for (int time = 0; time < 2; ++time) {  // the second time the call is in the cache
      expect_said([&] { world.all_reduce(floats, doubles); },
                  "all_reduce: " + who + "'in' holds float32, but 'out' float64");
      expect_said([&] { world.all_reduce(std::span(floats).first(3), floats); },
                  "all_reduce: " + who + "'in' has 3 elements, but 'out' 4");
      expect_said([&] { world.all_gather(std::span(floats).first(1), floats); },
                  "all_gather: " + who);
      expect_said([&] { world.reduce_scatter(floats, std::span(floats).first(1)); },
                  "reduce_scatter: " + who);
      expect_said([&] { world.scan(floats, std::span(floats).first(2)); }, "scan: " + who);
      std::vector<float> chunk(2);
      world.all_reduce(std::span(floats).first(3));
      world.all_reduce(floats);
      world.all_gather(chunk, floats);
      world.reduce_scatter(floats, chunk);
      world.scan(floats);
    }
  });
}

TEST_CASE("spans carry shares of any length, as the counts say") {
  const bool is_async = GENERATE(false, true);
  run_ranks(3, "inproc", [is_async](Communicator& world) {
    const int rank = world.rank();
    const std::vector<std::size_t> counts{5, 0, 2};
    const std::size_t own = counts[static_cast<std::size_t>(rank)];
    const std::vector<float> mine = filled(rank, own);
    const std::vector<float> same(7, 2.0F);
    std::vector<float> all(7), gathered(rank == 1 ? 7 : 0), back(own), sums(own);
    const std::vector<std::size_t> nobody_knows = rank == 1 ? counts : std::vector<std::size_t>();
    if (is_async) {
      world.all_gather_v_async(mine, std::span(all), counts).wait();
      world.gather_v_async(mine, std::span(gathered), nobody_knows, 1).wait();
      world.scatter_v_async(gathered, std::span(back), nobody_knows, 1).wait();
      world.reduce_scatter_v_async(same, std::span(sums), counts, ReduceOp::kProduct).wait();
    } else {
      world.all_gather_v(mine, std::span(all), counts);
      world.gather_v(mine, std::span(gathered), nobody_knows, 1);
      world.scatter_v(gathered, std::span(back), nobody_knows, 1);
      world.reduce_scatter_v(same, std::span(sums), counts, ReduceOp::kProduct);
    }
    std::vector<float> expected = filled(0, 5);
    for (const float late : filled(2, 2)) expected.push_back(late);
    expect(all == expected, "what all gave, in a row");
    expect(rank != 1 || gathered == expected, "the same at the root");
    expect(back == mine, "what was gathered comes back");
    expect(sums == std::vector<float>(own, 8.0F), "2 * 2 * 2");
  });
}

TEST_CASE("spans of all_to_all_v and send_receive receive the data of the others") {
  const bool is_async = GENERATE(false, true);
  run_ranks(3, "inproc", [is_async](Communicator& world) {
    const int rank = world.rank();
    const auto shift = static_cast<std::size_t>(rank);
    // Rank r sends (r + p) % 3 elements to rank p.
    const std::vector<std::size_t> counts{shift % 3, (shift + 1) % 3, (shift + 2) % 3};
    const std::vector<float> in(3, static_cast<float>(rank));
    std::vector<float> out(3);
    if (is_async) {
      world.all_to_all_v_async(in, counts, std::span(out), counts).wait();
    } else {
      world.all_to_all_v(in, counts, std::span(out), counts);
    }
    std::size_t place = 0;
    for (int from = 0; from < 3; ++from) {
      for (std::size_t i = 0; i < counts[static_cast<std::size_t>(from)]; ++i)
        expect(out[place++] == static_cast<float>(from), "an element from its rank");
    }
    std::array<std::int32_t, 2> received{};
    const std::array<std::int32_t, 2> sent{rank, -rank};
    world.send_receive(sent, (rank + 1) % 3, std::span(received), (rank + 2) % 3);
    expect(received[0] == (rank + 2) % 3 && received[1] == -received[0], "what came round");
  });
}

TEST_CASE("an error names a span that does not match the counts before anything is sent") {
  run_ranks(2, "inproc", [](Communicator& world) {
    std::vector<float> all(7);
    std::vector<float> three(3);
    const std::vector<std::size_t> counts{4, 3}, none, more{4, 4};
    const bool is_root = world.rank() == 0;
    const std::string who = "rank " + std::to_string(world.rank()) + " of 2: ";
    const auto everywhere = [&](const auto& call, const std::string& wanted) {
      expect_said(call, wanted);
    };
    const auto at_root = [&](const auto& call, const std::string& wanted) {
      if (is_root) expect_said(call, wanted);
    };
    everywhere([&] { world.all_gather_v(three, std::span(all), none); },
               "all_gather: 'counts' has 0 entries for 2 ranks; give one for each");
    everywhere([&] { world.all_gather_v_async(three, std::span(all), more); },
               "all_gather: " + who +
                   "the sum of 'counts' is 8 elements, but the buffer for all ranks has 7");
    everywhere([&] { world.reduce_scatter_v(all, std::span(all).first(2), counts); },
               is_root ? "its entry in 'counts' is 4 elements, but the buffer of its share has 2"
                       : "its entry in 'counts' is 3 elements, but the buffer of its share has 2");
    everywhere([&] { world.reduce_scatter_v_async(all, std::span(three), more); },
               "the sum of 'counts' is 8");
    everywhere([&] { world.all_to_all_v(all, more, std::span(three), counts); },
               "all_to_all: " + who +
                   "the sum of 'gives' is 8 elements, but the buffer for all ranks has 7");
    everywhere([&] { world.all_to_all_v_async(all, counts, std::span(three), counts); },
               "all_to_all: " + who +
                   "the sum of 'gets' is 7 elements, but the buffer for all ranks has 3");
    at_root([&] { world.gather(three, std::span(all)); },
            "gather: rank 0 of 2: its chunk of 7 elements has 4, but its buffer 3: pass "
            "chunk_count(7, 2, 0), or use gather_v");
    at_root([&] { world.gather_async(three, std::span(all)); }, "its chunk of 7 elements has 4");
    at_root([&] { world.scatter(all, std::span(three)); }, "scatter: rank 0 of 2: its chunk");
    at_root([&] { world.scatter_async(all, std::span(three)); }, "use scatter_v");
    at_root([&] { world.gather_v(three, std::span(all), counts); },
            "its entry in 'counts' is 4 elements");
    at_root([&] { world.gather_v_async(three, std::span(all), more); },
            "the sum of 'counts' is 8 elements");
    at_root([&] { world.scatter_v(all, std::span(three), none); }, "'counts' has 0 entries");
    at_root([&] { world.scatter_v_async(all, std::span(three), more); },
            "the sum of 'counts' is 8 elements");
    everywhere([&] { world.gather(three, std::span(all), 2); }, "root 2 is not a rank");
    world.all_reduce(std::span(all));
  });
}

TEST_CASE("a chunk of another length than the root's buffer gives it is an error on both") {
  const auto outcomes = run_threads(2, [](int rank, const std::shared_ptr<Store>& store) {
    Communicator world(rank, 2, store, {.transport = "inproc"});
    std::vector<float> all(rank == 0 ? 7 : 0);
    std::vector<float> chunk(4);  // the chunk of rank 1 has 3
    world.gather(chunk, all);
    world.barrier();
  });
  for (const RankOutcome& outcome : outcomes) {
    INFO(outcome.text);
    CHECK(outcome.code == ErrorCode::kMismatch);
    CHECK_THAT(outcome.text,
               ContainsSubstring("gather #0") && ContainsSubstring("7") && ContainsSubstring("8"));
  }
}

}  // namespace kolo::test
