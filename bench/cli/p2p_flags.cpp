#include "bench/cli/p2p_flags.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "bench/cli/sizes.h"

namespace kolo::bench {
namespace {

constexpr int kMostInWindow = 1024;
constexpr std::size_t kMostAgainst = std::size_t{1} << 30;

}  // namespace

void add_p2p(CLI::App& app, Arguments& result, RawOptions& typed) {
  typed.max_bytes = "4M";
  CLI::App* command =
      app.add_subcommand("p2p", "Measure two ranks: latency, bandwidth, message rate");
  command->option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  command->add_option("kind", typed.p2p_kind, names_of(kP2pKinds))->required();
  command
      ->add_option("-t,--transport", result.transport,
                   "inproc (threads), shm, tcp, ... or auto; all of them in turn (all)")
      ->capture_default_str();
  command->add_option("--against", typed.against,
                      "Peers to measure in turn with kolo: openmpi,mpich,gloo; openmpi:ucx for "
                      "Open MPI over UCX");
  command->add_option(
      "--level", typed.p2p_level,
      "segments (the transport's channel), messages (the communicator's send and "
      "receive), both in turn; library: segments and bare UCX (ucx) or libfabric in turn "
      "[segments; with --against or --device messages]");
  command
      ->add_option("--window", result.p2p.window,
                   "Messages per sample; 0: 64 or as many as fit 16 MiB, latency 16 or 64 KiB")
      ->capture_default_str();
  add_device(*command, typed);
  add_sizes(*command, result, typed);
  add_timing(*command, result, typed);
  add_decorators(*command, result);
  add_end_of_help(*command, SizesOf::kBytes);
}

void take_p2p(const RawOptions& typed, Arguments& result) {
  P2pRequest& p2p = result.p2p;
  p2p.kind = by_name(typed.p2p_kind, kP2pKinds, "p2p");
  const bool is_of_segments = result.against.empty() && result.device.empty();
  const P2pLevel usual = is_of_segments ? P2pLevel::kSegments : P2pLevel::kMessages;
  p2p.level = typed.p2p_level.empty() ? usual : by_name(typed.p2p_level, kP2pLevels, "--level");
  require(result.device.empty() || p2p.level == P2pLevel::kMessages,
          fmt::format("--level {} --device cuda: channels and bare libraries work on host memory "
                      "only; leave --level out, to measure messages on a stream",
                      to_string(p2p.level)));
  require(p2p.window >= 0 && p2p.window <= kMostInWindow,
          fmt::format("--window {}: expected 0 to {}", p2p.window, kMostInWindow));
  require(result.min_bytes >= 1, "--min-bytes 0, --bytes 0: a message has at least 1 byte here");
  require(result.against.empty() || result.max_bytes <= kMostAgainst,
          fmt::format("--against with {}: MPI counts the bytes of a message in 32 bits; at "
                      "most {}",
                      format_bytes(result.max_bytes), format_bytes(kMostAgainst)));
  sweep(result.min_bytes, result.max_bytes, result.factor, 1);
}

}  // namespace kolo::bench
