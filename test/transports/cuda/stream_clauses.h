// Clauses of StreamChannel's contract (transport.h), and how to run them with ranks as threads or
// as processes. A clause runs on every rank, and throws what it found instead.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "test/transports/cuda/stream_rank.h"

namespace kolo::test {

struct StreamClause {
  std::string_view text;
  int size = 2;  // ranks
  void (*prove)(StreamRank& rank) = nullptr;
};

std::span<const StreamClause> stream_clauses();

#define KOLO_STREAM_CLAUSE(function, size, text) void function(StreamRank& rank);
#include "test/transports/cuda/stream_clauses.inc"
#undef KOLO_STREAM_CLAUSE

// Proves the clause as one rank of a job. Throws what is wrong, which is also posted in the store.
void prove_as_rank(const StreamClause& clause, const StreamKind& kind, const StreamMachine& machine,
                   int rank, const std::shared_ptr<Store>& store);

// Proves the clause with a thread for each rank. Throws the first rank's failure.
void prove_in_threads(const StreamClause& clause, const StreamKind& kind,
                      const std::function<StreamMachine(int rank)>& machine_of);

// The driver of a process.
enum class StreamDriver { kFake, kInstalled };

// Proves all clauses with ranks as processes: a job for each number of ranks. Returns the output of
// the failed ranks; empty if all have passed. A job that does not end in time is killed.
std::string prove_in_processes(const StreamKind& kind, StreamDriver driver);

// The same with the ranks as threads of one process, which is not this one. So CUDA starts there
// with a hardware queue for each stream (CUDA_DEVICE_MAX_CONNECTIONS).
std::string prove_in_threads_of_a_process(const StreamKind& kind, StreamDriver driver);

}  // namespace kolo::test
