// One side of a comparison: the strategy and where its servers are. Nothing else may differ between
// arms.
//
// Written as words with colons: "ring", "ps", "ps:everywhere", "ps:sharded:servers=2",
// "ps:optimizer=server". The words are the strategy's own; whatever belongs to the experiment
// (learning rate, precision, ...) is refused here, because arms that differ in it would compare two
// things at once.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kolo::train {

// Where a parameter server's shards are kept.
enum class ServerPlacement {
  none,       // the strategy has no servers
  dedicated,  // processes that serve and do nothing else: one, or several with a shard each
  everywhere  // every worker serves one shard too
};

// Who applies the optimizer.
enum class UpdateAt { worker, server };

struct Arm {
  std::string strategy = "ring";
  ServerPlacement placement = ServerPlacement::none;
  int servers = 0;  // dedicated server processes; their ranks follow the workers'
  UpdateAt update_at = UpdateAt::worker;
  bool is_called_sharded = false;  // "ps:sharded", which is "ps:servers=2" in another word

  // As it is written on the command line, in its shortest form.
  std::string name() const;
  // With every word written out: parses to this arm whatever the defaults are.
  std::string full_name() const;
  // Whether they train alike, whatever they are called.
  friend bool operator==(const Arm& one, const Arm& other) {
    return one.strategy == other.strategy && one.placement == other.placement &&
           one.servers == other.servers && one.update_at == other.update_at;
  }
};

// What an arm gets where its own words say nothing: --ps-mode, --servers, --ps-optimizer.
struct ArmDefaults {
  std::string ps_mode = "dedicated";  // dedicated, sharded or everywhere
  int servers = 0;                    // 0: one if dedicated, two if sharded
  std::string ps_optimizer = "worker";
};

// "ring,ps:everywhere" to arms. Throws std::invalid_argument: an unknown strategy or word (the
// message lists those that exist), a word that belongs to the experiment, or the same arm twice.
std::vector<Arm> parse_arms(std::string_view text, const ArmDefaults& defaults);

// "ring (ring_all_reduce), ps (param_server); ps takes words: ...": for messages and --help.
std::string list_of_strategies();

}  // namespace kolo::train
