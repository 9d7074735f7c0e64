// Operations of the C interface: each gives what the C++ interface gives, blocking and in flight.
#include <array>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <vector>

#include "collectives/c/kolo_servers.h"
#include "collectives/c/kolo_statistics.h"
#include "test/collectives/c/ranks.h"
#include "test/support/catch.h"

namespace kolo::test {
namespace {

using Values = std::vector<std::uint32_t>;

constexpr int kSize = 3;
constexpr std::size_t kCount = 10;  // chunks of 4, 3 and 3

// Element i of rank r is 100 r + i, so the sum over all ranks is 300 + 3 i.
Values values_of(int rank, std::size_t count = kCount) {
  Values values(count);
  std::iota(values.begin(), values.end(), 100u * static_cast<std::uint32_t>(rank));
  return values;
}

Values sums(std::size_t count = kCount) {
  Values values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = 300 + 3 * static_cast<std::uint32_t>(i);
  return values;
}

Values chunk_of(const Values& all, int rank) {
  const std::size_t begin = kolo_chunk_begin(all.size(), kSize, rank);
  return {
      all.begin() + static_cast<std::ptrdiff_t>(begin),
      all.begin() + static_cast<std::ptrdiff_t>(begin + kolo_chunk_count(all.size(), kSize, rank))};
}

// Runs an operation blocking, and again with a work handle, into cleared memory each time.
template <typename Operation>
void both_forms(Values& out, const Values& expected, const char* name, const Operation& operation) {
  for (const bool is_blocking : {true, false}) {
    std::fill(out.begin(), out.end(), 0u);
    kolo_work* work = nullptr;
    expect_ok(operation(is_blocking ? nullptr : &work), name);
    if (!is_blocking) expect_ok(kolo_wait(work), name);
    kolo_work_free(work);
    expect(out == expected, std::string(name) + " gives other values");
  }
}

void reductions(kolo_communicator* world) {
  const int rank = kolo_rank(world);
  const Values mine = values_of(rank);
  Values out(kCount);
  both_forms(out, sums(), "kolo_all_reduce", [&](kolo_work** work) {
    return kolo_all_reduce(world, mine.data(), out.data(), kCount, KOLO_UINT32, KOLO_SUM, nullptr,
                           work);
  });
  both_forms(out, rank == 1 ? sums() : Values(kCount), "kolo_reduce", [&](kolo_work** work) {
    return kolo_reduce(world, mine.data(), rank == 1 ? out.data() : nullptr, kCount, KOLO_UINT32,
                       KOLO_SUM, 1, nullptr, work);
  });
  Values before(kCount), up_to(kCount);
  for (int r = 0; r <= rank; ++r) {
    for (std::size_t i = 0; i < kCount; ++i) {
      up_to[i] += values_of(r)[i];
      if (r < rank) before[i] += values_of(r)[i];
    }
  }
  both_forms(out, up_to, "kolo_scan", [&](kolo_work** work) {
    return kolo_scan(world, mine.data(), out.data(), kCount, KOLO_UINT32, KOLO_SUM, nullptr, work);
  });
  both_forms(out, before, "kolo_exclusive_scan", [&](kolo_work** work) {
    return kolo_exclusive_scan(world, mine.data(), out.data(), kCount, KOLO_UINT32, KOLO_SUM,
                               nullptr, work);
  });
  Values chunk = chunk_of(mine, rank);
  both_forms(chunk, chunk_of(sums(), rank), "kolo_reduce_scatter", [&](kolo_work** work) {
    return kolo_reduce_scatter(world, mine.data(), chunk.data(), kCount, KOLO_UINT32, KOLO_SUM,
                               nullptr, work);
  });
}

void copies(kolo_communicator* world) {
  const int rank = kolo_rank(world);
  const Values all = values_of(7);
  const Values mine = chunk_of(all, rank);
  Values out(kCount);
  both_forms(out, all, "kolo_all_gather", [&](kolo_work** work) {
    return kolo_all_gather(world, mine.data(), out.data(), kCount, KOLO_UINT32, nullptr, work);
  });
  both_forms(out, rank == 2 ? all : Values(kCount), "kolo_gather", [&](kolo_work** work) {
    return kolo_gather(world, mine.data(), rank == 2 ? out.data() : nullptr, kCount, KOLO_UINT32, 2,
                       nullptr, work);
  });
  both_forms(out, all, "kolo_broadcast", [&](kolo_work** work) {
    if (rank == 1) out = all;
    return kolo_broadcast(world, out.data(), kCount, KOLO_UINT32, 1, nullptr, work);
  });
  Values chunk(mine.size());
  both_forms(chunk, mine, "kolo_scatter", [&](kolo_work** work) {
    return kolo_scatter(world, rank == 0 ? all.data() : nullptr, chunk.data(), kCount, KOLO_UINT32,
                        0, nullptr, work);
  });
  // Rank p sends 10 r + p to rank p.
  Values given(kSize), got(kSize), expected(kSize);
  for (std::uint32_t p = 0; p < kSize; ++p) {
    given[p] = 10 * static_cast<std::uint32_t>(rank) + p;
    expected[p] = 10 * p + static_cast<std::uint32_t>(rank);
  }
  both_forms(got, expected, "kolo_all_to_all", [&](kolo_work** work) {
    return kolo_all_to_all(world, given.data(), got.data(), kSize, KOLO_UINT32, nullptr, work);
  });
  expect_ok(kolo_barrier(world, nullptr, nullptr), "kolo_barrier");
}

void shares_of_any_length(kolo_communicator* world) {
  const int rank = kolo_rank(world);
  const std::array<std::size_t, kSize> counts = {5, 0, 5};
  const std::array<std::size_t, kSize + 1> begins = {0, 5, 5, 10};
  const auto share_of = [&](const Values& all) {
    const auto r = static_cast<std::size_t>(rank);
    return Values(all.begin() + static_cast<std::ptrdiff_t>(begins[r]),
                  all.begin() + static_cast<std::ptrdiff_t>(begins[r + 1]));
  };
  const Values all = values_of(7), mine = values_of(rank), own = share_of(all);
  Values out(kCount), share(own.size());
  both_forms(share, share_of(sums()), "kolo_reduce_scatter_v", [&](kolo_work** work) {
    return kolo_reduce_scatter_v(world, mine.data(), share.data(), counts.data(), KOLO_UINT32,
                                 KOLO_SUM, nullptr, work);
  });
  both_forms(out, all, "kolo_all_gather_v", [&](kolo_work** work) {
    return kolo_all_gather_v(world, own.data(), out.data(), counts.data(), KOLO_UINT32, nullptr,
                             work);
  });
  const bool is_root = rank == 1;
  both_forms(out, is_root ? all : Values(kCount), "kolo_gather_v", [&](kolo_work** work) {
    return kolo_gather_v(world, own.data(), own.size(), is_root ? out.data() : nullptr,
                         is_root ? counts.data() : nullptr, KOLO_UINT32, 1, nullptr, work);
  });
  both_forms(share, own, "kolo_scatter_v", [&](kolo_work** work) {
    return kolo_scatter_v(world, is_root ? all.data() : nullptr, is_root ? counts.data() : nullptr,
                          share.data(), share.size(), KOLO_UINT32, 1, nullptr, work);
  });
  // Every rank gives p + 1 elements to rank p: 1000 r + p.
  const std::array<std::size_t, kSize> gives = {1, 2, 3};
  const auto mine_count = static_cast<std::size_t>(rank) + 1;
  const std::array<std::size_t, kSize> gets = {mine_count, mine_count, mine_count};
  Values given, got(kSize * mine_count), expected;
  for (std::uint32_t p = 0; p < kSize; ++p) {
    given.insert(given.end(), p + 1, 1000 * static_cast<std::uint32_t>(rank) + p);
    expected.insert(expected.end(), mine_count, 1000 * p + static_cast<std::uint32_t>(rank));
  }
  both_forms(got, expected, "kolo_all_to_all_v", [&](kolo_work** work) {
    return kolo_all_to_all_v(world, given.data(), gives.data(), got.data(), gets.data(),
                             KOLO_UINT32, nullptr, work);
  });
}

void messages(kolo_communicator* world) {
  const int rank = kolo_rank(world);
  const int next = (rank + 1) % kSize, previous = (rank + kSize - 1) % kSize;
  const Values mine = values_of(rank);
  Values out(kCount);
  expect_ok(kolo_send_receive(world, mine.data(), kCount, next, out.data(), kCount, previous,
                              KOLO_UINT32, nullptr),
            "kolo_send_receive");
  expect(out == values_of(previous), "kolo_send_receive gives other values");
  both_forms(out, values_of(previous), "kolo_receive", [&](kolo_work** work) {
    kolo_work* posted = nullptr;
    expect_ok(kolo_receive(world, out.data(), kCount, KOLO_UINT32, previous, nullptr, &posted));
    const kolo_result sent =
        kolo_send(world, mine.data(), kCount, KOLO_UINT32, next, nullptr, work);
    expect_ok(kolo_wait(posted), "kolo_wait");
    kolo_work_free(posted);
    return sent;
  });
}

}  // namespace

TEST_CASE("C interface: each operation gives its values, blocking and in flight") {
  const char* const transport = GENERATE("shm", "tcp");
  CHECK(run_c_ranks(kSize, transport, [](kolo_communicator* world) {
          reductions(world);
          copies(world);
          shares_of_any_length(world);
          messages(world);
        }) == none(kSize));
}

TEST_CASE("C interface: servers reduce, update and answer") {
  CHECK(run_c_ranks(kSize, "shm", [](kolo_communicator* world) {
          const int rank = kolo_rank(world);
          const int server = 2;
          kolo_server_plan plan = {};
          plan.size = sizeof plan;
          plan.servers = &server;
          plan.server_count = 1;
          kolo_server_update doubling = {};
          doubling.size = sizeof doubling;
          doubling.update = [](void*, size_t, void* sums, size_t bytes) {
            for (size_t i = 0; i < bytes / sizeof(std::uint32_t); ++i)
              static_cast<std::uint32_t*>(sums)[i] *= 2;
            return 0;
          };
          const bool serves = rank == server;
          const Values mine = values_of(rank, 4);
          const Values expected = {200, 204, 208, 212};  // 2 (100 + 2 i)
          Values out(4);
          expect_ok(
              kolo_push_pull(world, serves ? nullptr : mine.data(), serves ? nullptr : out.data(),
                             4, KOLO_UINT32, KOLO_SUM, &plan, &doubling, nullptr, nullptr),
              "kolo_push_pull");
          expect(serves || out == expected, "kolo_push_pull gives other values");
          size_t begin = 0, count = 0;
          expect_ok(kolo_server_share(&plan, rank, kSize, 4, &begin, &count));
          expect(begin == 0 && count == (serves ? 4u : 0u), "another share");
          Values share(count);
          std::fill(out.begin(), out.end(), 0u);
          expect_ok(kolo_push(world, serves ? nullptr : mine.data(), share.data(), 4, KOLO_UINT32,
                              KOLO_SUM, &plan, &doubling, nullptr, nullptr),
                    "kolo_push");
          expect(!serves || share == expected, "kolo_push gives other values");
          expect_ok(kolo_pull(world, share.data(), serves ? nullptr : out.data(), 4, KOLO_UINT32,
                              &plan, nullptr, nullptr),
                    "kolo_pull");
          expect(serves || out == expected, "kolo_pull gives other values");
        }) == none(kSize));
}

TEST_CASE("C interface: a function of the caller reduces structs of its own") {
  struct Best {
    std::int32_t rank;
    float score;
  };
  CHECK(run_c_ranks(kSize, "shm", [](kolo_communicator* world) {
          kolo_user_op best = {};
          best.size = sizeof best;
          best.element_bytes = sizeof(Best);
          best.combine = [](void*, void* out, const void* left, const void* right, size_t count) {
            for (size_t i = 0; i < count; ++i) {
              const auto& a = static_cast<const Best*>(left)[i];
              const auto& b = static_cast<const Best*>(right)[i];
              static_cast<Best*>(out)[i] = a.score >= b.score ? a : b;
            }
            return 0;
          };
          kolo_call call = {};
          call.size = sizeof call;
          call.user_op = &best;
          const int rank = kolo_rank(world);
          Best mine = {rank, rank == 1 ? 9.f : static_cast<float>(rank)};
          expect_ok(
              kolo_all_reduce(world, &mine, &mine, 1, KOLO_USER_TYPE, KOLO_USER, &call, nullptr),
              "kolo_all_reduce");
          expect(mine.rank == 1 && mine.score == 9.f, "another best");
        }) == none(kSize));
}

TEST_CASE("C interface: scaled sums, persistent operations, algorithms by name, callbacks") {
  CHECK(run_c_ranks(2, "shm", [](kolo_communicator* world) {
          kolo_call call = {};
          call.size = sizeof call;
          call.scale = 0.5;
          float value = 8;
          expect_ok(kolo_all_reduce(world, &value, &value, 1, KOLO_FLOAT32, KOLO_SCALED_SUM, &call,
                                    nullptr));
          expect(value == 8.f, "another scaled sum");
          call.algorithm = "ring";
          call.is_persistent = 1;
          kolo_work* work = nullptr;
          expect_ok(
              kolo_all_reduce(world, &value, &value, 1, KOLO_FLOAT32, KOLO_SUM, &call, &work));
          int calls = 0;
          for (int i = 1; i <= 3; ++i) {
            expect_ok(kolo_start(work));
            const auto count = [](void* context, const kolo_failure* failure) {
              if (failure == nullptr) ++*static_cast<int*>(context);
            };
            expect_ok(kolo_when_done(work, count, &calls));
            size_t index = 9;
            kolo_work* const works[] = {nullptr, work};
            expect_ok(kolo_wait_any(works, 2, -1, &index));
            int is_done = 0;
            expect_ok(kolo_test(work, &is_done));
            expect(index == 1 && is_done == 1 && calls == i, "not done, or no call");
          }
          expect(value == 64.f, "another sum");
          kolo_work_free(work);
        }) == none(2));
}

TEST_CASE("C interface: groups, memory and statistics") {
  CHECK(run_c_ranks(kSize, "shm", [](kolo_communicator* world) {
          const int rank = kolo_rank(world);
          kolo_communicator* group = nullptr;
          expect_ok(kolo_split(world, rank == 1 ? -1 : 0, -rank, &group), "kolo_split");
          expect((group == nullptr) == (rank == 1), "another group");
          if (group != nullptr) {
            int job_rank = -1;
            expect_ok(kolo_job_rank(group, 0, &job_rank));
            expect(kolo_size(group) == 2 && job_rank == 2, "another order");
            kolo_free(group);
            const int both[] = {0, 2};
            expect_ok(kolo_subset(world, both, 2, &group), "kolo_subset");
            expect_ok(kolo_barrier(group, nullptr, nullptr));
            kolo_free(group);
          }
          kolo_communicator* twin = nullptr;
          expect_ok(kolo_duplicate(world, &twin), "kolo_duplicate");
          void* memory = nullptr;
          expect_ok(kolo_allocate(twin, 4096, &memory));
          expect_ok(kolo_all_reduce(twin, memory, memory, 1024, KOLO_FLOAT32, KOLO_SUM, nullptr,
                                    nullptr));
          kolo_statistics statistics = {};
          statistics.size = sizeof statistics;
          expect_ok(kolo_get_statistics(twin, &statistics));
          expect(statistics.operations == 1 && statistics.payload_bytes_sent > 0, "no traffic");
          kolo_peer_statistics with = {};
          with.size = sizeof with;
          expect_ok(kolo_get_peer_statistics(twin, (rank + 1) % kSize, &with));
          expect(std::string(with.transport) == "shm", "another transport");
          int active = 1;
          expect_ok(kolo_progress(twin, &active));
          expect(active == 0, "something is in flight");
          kolo_free(twin);
          kolo_release(memory);
          int hosts[kSize] = {9, 9, 9};
          expect_ok(kolo_hosts(world, hosts));
          expect(hosts[0] == 0 && hosts[2] == 0, "several hosts");
          expect(std::string(kolo_transport_name(world)) == "shm", "another transport");
          kolo_prediction predicted[2] = {};
          size_t count = 0;
          expect_ok(kolo_predict(world, KOLO_COLLECTIVE_ALL_REDUCE, 1 << 20, KOLO_FLOAT32, KOLO_SUM,
                                 predicted, 2, &count));
          expect(count > 2 && predicted[0].algorithm != nullptr, "no prediction");
        }) == none(kSize));
}

}  // namespace kolo::test
