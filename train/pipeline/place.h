// The place of a rank in pipelines of S stages: ranks r S to r S + S - 1 are the stages of replica
// r. Without pipelines each rank is the only stage of a replica of its own.
#pragma once

namespace kolo::train {

struct PipelinePlace {
  int stages = 1;
  int stage = 0;
  int replica = 0;
  int replicas = 1;

  // `stages_each`: of a replica.
  constexpr PipelinePlace(int rank, int ranks, int stages_each)
      : stages(stages_each),
        stage(rank % stages_each),
        replica(rank / stages_each),
        replicas(ranks / stages_each) {}
  bool is_first() const { return stage == 0; }
  bool is_last() const { return stage + 1 == stages; }
};

}  // namespace kolo::train
