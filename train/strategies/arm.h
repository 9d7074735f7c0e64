// Arm of a comparison: a strategy with its own options. Arms differ in nothing else.
//
// Written as words with colons: "ring", "ring:sync=naive", "tree", "ps", "ps:everywhere",
// "ps:sharded:servers=2", "ps:split", "ps:optimizer=server", "ps:async", "ps:ssp=3", "ps:backup=1",
// "local-sgd:8", "pipeline:2", "dataparallel", "sharded", "torch-ddp". Only words of the strategy
// are allowed. Settings of the experiment (learning rate, precision, ...) are an error here,
// because arms that differ in them are not comparable.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "collectives/key_server.h"

namespace kolo::train {

// When an arm of all-reduce exchanges gradients, and in what pieces.
enum class Sync {
  naive,        // after backward: one parameter after the other
  flat,         // after backward: all gradients at once
  overlap,      // during backward: each parameter as soon as its gradient is final
  bucketed,     // during backward: buckets of several parameters
  prioritized,  // small buckets, the first layers first, until the next forward needs them
  fusion        // gradients that are final on all ranks, copied into one buffer, once per cycle
};

// The words of `sync=`, in the order of the enumeration.
inline constexpr std::array<std::string_view, 6> kSyncNames{"naive",    "flat",        "overlap",
                                                            "bucketed", "prioritized", "fusion"};

// Placement of the parameter server's shards.
enum class ServerPlacement {
  none,        // the strategy has no servers
  dedicated,   // processes that only serve: one, or several with a shard each
  everywhere,  // every worker serves one shard too
  split        // dedicated processes, and a smaller shard in every worker
};

// Fewest workers with which split differs from a ring.
inline constexpr int kFewestWorkersOfSplit = 3;

// Which ranks apply the optimizer.
enum class UpdateAt {
  worker,  // every worker, to all parameters
  server,  // the servers, each to its share
  shard    // every worker, to its shard
};

struct Arm {
  std::string strategy = "ring";
  ServerPlacement placement = ServerPlacement::none;
  int servers = 0;  // dedicated server processes; their ranks follow the workers'
  UpdateAt update_at = UpdateAt::worker;
  // When dedicated servers apply gradients: async, ssp=S and backup=B serve the messages of each
  // worker as they arrive (collectives/key_server.h).
  Consistency rule;
  Sync sync = Sync::bucketed;      // of arms of all-reduce
  int local_steps = 0;             // local-sgd: parameters are averaged every so many iterations
  int stages = 0;                  // pipeline: ranks that share a model
  bool is_called_sharded = false;  // "ps:sharded", another name for "ps:servers=2"

  // Trains in PyTorch (train/versus).
  bool is_torch() const { return strategy.starts_with("torch-"); }

  // Servers handle each worker's messages by themselves, not in a collective.
  bool is_served() const { return rule.kind != Consistency::Kind::kSynchronous; }

  // Replicas may differ during an epoch; they are equal at its end.
  bool has_different_replicas() const { return is_served() || local_steps > 0; }
  // What differs by nature from synchronous training, in words; empty: nothing.
  std::string difference() const;

  // The shortest form on the command line.
  std::string name() const;
  // The form with all words, which parses to this arm with any defaults.
  std::string full_name() const;
  // Whether they train in the same way, also under different names.
  friend bool operator==(const Arm& one, const Arm& other) {
    return one.strategy == other.strategy && one.placement == other.placement &&
           one.servers == other.servers && one.update_at == other.update_at &&
           one.sync == other.sync && one.local_steps == other.local_steps &&
           one.stages == other.stages && one.rule.kind == other.rule.kind &&
           one.rule.bound == other.rule.bound;
  }
};

// Defaults for arms whose words do not set a value: --ps-mode, --servers, --ps-optimizer.
struct ArmDefaults {
  std::string ps_mode = "dedicated";  // dedicated, sharded, everywhere or split
  int servers = 0;                    // 0: one, or two if sharded
  std::string ps_optimizer = "worker";
};

// Parses a list such as "ring,ps:everywhere". Throws std::invalid_argument for an unknown strategy
// or word (the message lists the known ones), a setting of the experiment, or the same arm twice.
std::vector<Arm> parse_arms(std::string_view text, const ArmDefaults& defaults);

// "ring (ring_all_reduce), ps (param_server), ...; ps takes words: ...", for messages and --help.
std::string list_of_strategies();

}  // namespace kolo::train
