// Command line of kolo-bench: where each value arrives, and one clear message for each mistake.
#include "bench/cli/arguments.h"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/output/report.h"
#include "bench/peers/peers.h"
#include "test/support/catch.h"
#include "transports/error.h"
#include "transports/registry.h"

using namespace kolo;
using namespace kolo::bench;

namespace {

Arguments parsed(std::vector<const char*> words) {
  words.insert(words.begin(), "kolo-bench");
  Arguments result;
  REQUIRE(parse_arguments(static_cast<int>(words.size()), words.data(), result));
  return result;
}

std::string complaint(std::vector<const char*> words) {
  words.insert(words.begin(), "kolo-bench");
  Arguments result;
  try {
    parse_arguments(static_cast<int>(words.size()), words.data(), result);
  } catch (const std::invalid_argument& error) {
    return error.what();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing";
}

bool mentions(const std::string& text, const std::vector<std::string>& words) {
  UNSCOPED_INFO(text);
  return std::all_of(words.begin(), words.end(),
                     [&](const std::string& word) { return text.find(word) != std::string::npos; });
}

}  // namespace

TEST_CASE("the defaults go from 8 bytes to 256 MiB on two ranks, in place") {
  const Arguments found = parsed({"allreduce"});
  REQUIRE(found.problem.collective == Collective::kAllReduce);
  REQUIRE(found.ranks == 2);
  REQUIRE(found.min_bytes == 8);
  REQUIRE(found.max_bytes == std::size_t{256} << 20);
  REQUIRE(found.problem.is_in_place);
  REQUIRE(found.is_checked);
}

TEST_CASE("p2p takes a kind, a level and a window") {
  const Arguments found =
      parsed({"p2p", "bandwidth", "--level", "both", "--window", "7", "--transport", "tcp"});
  CHECK(found.command == "p2p");
  CHECK(found.p2p.kind == P2pKind::kBandwidth);
  CHECK(found.p2p.level == P2pLevel::kBoth);
  CHECK(found.p2p.window == 7);
  CHECK(found.ranks == 2);
  CHECK(found.max_bytes == std::size_t{4} << 20);
  CHECK(parsed({"p2p", "latency"}).p2p.level == P2pLevel::kSegments);
  CHECK(parsed({"p2p", "latency", "--transport", "all"}).is_over_all);
  CHECK(mentions(complaint({"p2p", "latency", "--against", "nobody"}), {"nobody", "peers"}));
  CHECK(mentions(complaint({"p2p"}), {"needs latency"}));
  CHECK(mentions(complaint({"p2p", "speed"}), {"latency", "message-rate"}));
  CHECK(mentions(complaint({"p2p", "latency", "--window", "2000"}), {"--window", "1024"}));
  CHECK(mentions(complaint({"p2p", "latency", "--min-bytes", "0"}), {"--min-bytes"}));
}

TEST_CASE("there are three forms, and an overlapped call cannot be blocking") {
  CHECK(parsed({"allreduce"}).form == CallForm::kBlocking);
  CHECK(parsed({"allreduce", "--form", "persistent"}).form == CallForm::kPersistent);
  CHECK(parsed({"allreduce", "--overlap"}).form == CallForm::kAsync);
  CHECK(parsed({"allreduce", "--overlap", "--form", "persistent"}).form == CallForm::kPersistent);
  CHECK(mentions(complaint({"allreduce", "--form", "lazy"}),
                 {"blocking, async, persistent, event-loop"}));
  CHECK(mentions(complaint({"allreduce", "--overlap", "--algorithm", "all"}), {"--overlap"}));
}

TEST_CASE("replays need a device and run beside kolo itself only") {
  CHECK_FALSE(parsed({"allreduce", "--device", "cuda"}).is_captured);
  CHECK(parsed({"allreduce", "--device", "cuda", "--captured"}).is_captured);
  CHECK(mentions(complaint({"allreduce", "--captured"}), {"--captured", "add --device cuda"}));
  CHECK(mentions(complaint({"allreduce", "--device", "cuda", "--captured", "--algorithm", "all"}),
                 {"--algorithm all", "leave --captured out"}));
  CHECK(mentions(complaint({"allreduce", "--form", "captured"}),
                 {"blocking, async, persistent, event-loop"}));
}

TEST_CASE("every option reaches its field") {
  const Arguments found = parsed({"push_pull",
                                  "--ranks",
                                  "4",
                                  "--transport",
                                  "inproc",
                                  "--min-bytes",
                                  "1K",
                                  "--max-bytes",
                                  "2M",
                                  "--factor",
                                  "8",
                                  "--type",
                                  "int64",
                                  "--op",
                                  "max",
                                  "--iterations",
                                  "12",
                                  "--warmup",
                                  "5",
                                  "--servers",
                                  "2",
                                  "--json",
                                  "-",
                                  "--out-of-place",
                                  "--segment-bytes",
                                  "16K",
                                  "--timeout",
                                  "2.5",
                                  "--passes",
                                  "3"});
  REQUIRE(found.problem.collective == Collective::kPushPull);
  REQUIRE(found.ranks == 4);
  REQUIRE(found.transport == "inproc");
  REQUIRE(found.min_bytes == 1024);
  REQUIRE(found.max_bytes == std::size_t{2} << 20);
  REQUIRE(found.factor == 8);
  REQUIRE(found.problem.type == ElementType::kInt64);
  REQUIRE(found.problem.op == ReduceOp::kMax);
  REQUIRE(found.iterations == 12);
  REQUIRE(found.warmup == 5);
  REQUIRE(found.passes == 3);
  REQUIRE(found.problem.servers == 2);
  REQUIRE(found.json == "-");
  REQUIRE_FALSE(found.problem.is_in_place);
  REQUIRE(found.segment_bytes == 16 * 1024);
  REQUIRE(found.timeout.count() == 2500);
}

TEST_CASE("an option without meaning for a collective is recorded and ignored") {
  const Arguments barrier = parsed({"barrier", "--op", "max", "--type", "int32"});
  REQUIRE(barrier.without_meaning == std::vector<std::string>{"--type", "--op"});
  REQUIRE(barrier.problem.op == ReduceOp::kSum);
  REQUIRE(parsed({"broadcast", "--op", "max"}).without_meaning.size() == 1);
  REQUIRE(parsed({"allreduce", "--op", "max"}).without_meaning.empty());
}

TEST_CASE("explain takes sizes as a list, or as a sweep") {
  const Arguments listed = parsed({"explain", "allreduce", "--bytes", "4K,1M,10", "--ranks", "8"});
  REQUIRE(listed.command == "explain");
  REQUIRE(listed.problem.collective == Collective::kAllReduce);
  REQUIRE(listed.sizes == std::vector<std::size_t>{4096, 1 << 20, 10});
  REQUIRE(sizes_of(listed) == std::vector<std::size_t>{4096, 1 << 20, 8});
  REQUIRE(listed.min_bytes == 10);
  REQUIRE(listed.max_bytes == 1 << 20);
  REQUIRE(listed.ranks == 8);
  const Arguments swept = parsed({"explain", "scan", "--min-bytes", "8", "--max-bytes", "128"});
  REQUIRE(swept.sizes == std::vector<std::size_t>{8, 128});
}

TEST_CASE("sizes are a sweep or a list") {
  const Arguments listed = parsed({"allgather", "--bytes", "64K,10", "--type", "float64"});
  REQUIRE(sizes_of(listed) == std::vector<std::size_t>{65536, 8});
  REQUIRE(listed.max_bytes == 65536);
  REQUIRE(sizes_of(parsed({"p2p", "latency", "--bytes", "1"})) == std::vector<std::size_t>{1});
  REQUIRE(sizes_of(parsed({"barrier", "--bytes", "64K"})) == std::vector<std::size_t>{0});
  const Arguments swept = parsed({"allreduce", "--min-bytes", "8", "--max-bytes", "32"});
  REQUIRE(sizes_of(swept) == std::vector<std::size_t>{8, 32});
  REQUIRE(mentions(complaint({"allreduce", "--bytes", "64", "--factor", "2"}),
                   {"--bytes", "--factor"}));
  REQUIRE(mentions(complaint({"allreduce", "--bytes", "64,2"}), {"--bytes 2", "4 bytes"}));
  REQUIRE(mentions(complaint({"allreduce", "--bytes", ""}), {"--bytes: expected"}));
  REQUIRE(mentions(complaint({"p2p", "latency", "--bytes", "0"}), {"--bytes 0"}));
}

TEST_CASE("sizes are rounded to whole elements, in all-to-all to as many for every rank") {
  const auto sizes = [](const std::vector<const char*>& words) { return sizes_of(parsed(words)); };
  const auto said = [](const std::vector<const char*>& words) {
    return whole_sizes_text(parsed(words));
  };
  CHECK(sizes({"allreduce", "--bytes", "7,8"}) == std::vector<std::size_t>{4, 8});
  CHECK(said({"allreduce", "--bytes", "7,8"}) ==
        "sizes are multiples of 4 bytes (float32): 7 is measured as 4");
  CHECK(said({"allreduce", "--bytes", "7", "--type", "uint8"}).empty());
  CHECK(said({"allreduce"}).empty());
  CHECK(said({"reduce_scatter", "--ranks", "3"}).empty());  // shares may differ by an element
  CHECK(said({"allreduce", "--min-bytes", "9", "--max-bytes", "30", "--type", "float64"}) ==
        "sizes are multiples of 8 bytes (float64): 9 is measured as 8, 30 as 24");
  CHECK(sizes({"alltoall", "--bytes", "8,100,4K", "--ranks", "3"}) ==
        std::vector<std::size_t>{12, 96, 4092});
  CHECK(said({"alltoall", "--bytes", "8,12,100", "--ranks", "3"}) ==
        "sizes are multiples of 12 bytes (float32 for each of 3 ranks): 8 is measured as 12, 100 "
        "as 96");
  CHECK(said({"alltoall", "--max-bytes", "8K", "--ranks", "3"}) ==
        "sizes are multiples of 12 bytes (float32 for each of 3 ranks): 8 is measured as 12, 32 "
        "as 24, 128 as 120 and so on");
  CHECK(said({"alltoall", "--max-bytes", "1M", "--ranks", "2"}).empty());
  CHECK(said({"explain", "alltoall", "--bytes", "8", "--ranks", "3"}) ==
        "sizes are multiples of 12 bytes (float32 for each of 3 ranks): 8 is measured as 12");
  CHECK(said({"p2p", "latency", "--bytes", "7"}).empty());
  CHECK(said({"barrier", "--bytes", "7"}).empty());
}

TEST_CASE("list items may have spaces around them, and none may be empty") {
  REQUIRE(parsed({"allreduce", "--bytes", "4K, 1M"}).sizes ==
          std::vector<std::size_t>{4096, 1 << 20});
  REQUIRE(parsed({"limits", "--only", " line ,tcp"}).limits ==
          std::vector<std::string>{"line", "tcp"});
  REQUIRE(
      parsed({"tune", "--out", "table", "--ranks", "2, 4", "--transport", "shm, tcp"}).tune.ranks ==
      std::vector<int>{2, 4});
  REQUIRE(parsed({"draw", "scan", "--ranks", "2", "--hosts", "0, 1"}).draw.hosts ==
          std::vector<int>{0, 1});
  for (const char* list : {"4K,", ",4K", "4K,,1M", "4K, "}) {
    REQUIRE(complaint({"allreduce", "--bytes", list}) ==
            std::string("--bytes '") + list + "': there is nothing on one side of a comma");
  }
  REQUIRE(mentions(complaint({"allreduce", "--against", "gloo,"}),
                   {"--against 'gloo,'", "one side of a comma"}));
}

TEST_CASE("an option with one value refuses a list and says so") {
  REQUIRE(mentions(
      complaint({"allreduce", "--transport", "shm,tcp"}),
      {"--transport shm,tcp: one at a time, or all of them in turn; expected one of auto"}));
  REQUIRE(mentions(complaint({"allreduce", "--transport", "foo"}),
                   {", all, or the path of a library"}));
  REQUIRE(mentions(complaint({"explain", "allreduce", "--transport", "shm,tcp"}),
                   {"--transport shm,tcp: one at a time; expected one of"}));
  REQUIRE(mentions(complaint({"explain", "allreduce", "--transport", "all"}),
                   {"--transport all: explain takes one at a time; expected one of"}));
  REQUIRE(mentions(complaint({"tune", "--out", "table", "--transport", "all"}),
                   {"--transport all: tune takes a list"}));
  REQUIRE(mentions(complaint({"allreduce", "--ranks", "2,4"}),
                   {"--ranks 2,4: expected a whole number, one at a time"}));
  REQUIRE(mentions(complaint({"allreduce", "--type", "int8,int16"}),
                   {"one at a time; expected one of"}));
}

TEST_CASE("an error suggests a similar known word") {
  const auto guessed = [](std::vector<const char*> words, const std::string& meant) {
    return mentions(complaint(std::move(words)), {"; did you mean " + meant + "?"});
  };
  CHECK(guessed({"allreduc"}, "allreduce"));
  CHECK(guessed({"bcast"}, "broadcast"));
  CHECK(guessed({"explain", "allreduc"}, "allreduce"));
  CHECK(guessed({"allreduce", "--transport", "smh"}, "shm"));
  CHECK(guessed({"allreduce", "--type", "float"}, "float32"));
  CHECK(guessed({"allreduce", "--type", "fp16"}, "float16"));
  CHECK(guessed({"allreduce", "--type", "float8"}, "float8_e4m3"));
  CHECK(guessed({"allreduce", "--op", "mean"}, "average"));
  CHECK(guessed({"allreduce", "--op", "prod"}, "product"));
  CHECK(guessed({"allreduce", "--algorithm", "rign"}, "ring"));
  CHECK(guessed({"p2p", "latenzy"}, "latency"));
  CHECK_FALSE(mentions(complaint({"allreduce", "--op", "median"}), {"did you mean"}));
}

TEST_CASE("a transport that this machine cannot run is refused, with the reason") {
  for (const TransportFact& fact : transport_facts()) {
    if (fact.why_unusable.empty()) continue;
    const std::string refusal = "--transport " + fact.name +
                                ": cannot be used here: " + fact.why_unusable +
                                "; auto takes one that can";
    CHECK(complaint({"allreduce", "--transport", fact.name.c_str()}) == refusal);
    CHECK(complaint({"p2p", "latency", "--transport", fact.name.c_str()}) == refusal);
    CHECK(complaint({"tune", "--out", "x", "--transport", fact.name.c_str()}) == refusal);
  }
}

TEST_CASE("a peer for devices only is refused without a device, or left out beside others") {
  CHECK(needs_device("nccl"));
  CHECK_FALSE(needs_device("gloo:ring"));
  for (const std::string_view peer : peer_names()) {
    if (!needs_device(peer)) continue;
    const std::string name(peer);
    const std::string refusal =
        "--against " + name + ": it works on the memory of devices alone; add --device cuda";
    CHECK(complaint({"allreduce", "--against", name.c_str()}) == refusal);
    CHECK(complaint({"p2p", "latency", "--against", name.c_str()}) == refusal);
    const std::string both = name + ",ucx";
    const Arguments found = parsed({"allreduce", "--against", both.c_str()});
    CHECK(found.against.empty());
    CHECK(found.no_peers == std::vector<std::string>{name, "ucx"});
    CHECK(mentions(why_left_out(name), {"--device cuda"}));
    CHECK(mentions(why_left_out("ucx"), {"openmpi:ucx"}));
    CHECK(parsed({"allreduce", "--device", "cuda", "--against", name.c_str()}).against ==
          std::vector<std::string>{name});
    CHECK(parsed({"p2p", "latency", "--device", "cuda", "--against", name.c_str()}).against ==
          std::vector<std::string>{name});
  }
}

TEST_CASE("an unknown library is refused if alone and left out beside others") {
  const std::string refusal = "--against ucx: " + std::string(why_no_peer("ucx"));
  CHECK(complaint({"allreduce", "--against", "ucx"}) == refusal);
  CHECK(complaint({"p2p", "latency", "--against", "ucx"}) == refusal);
  for (const std::string_view peer : peer_names()) {
    if (needs_device(peer)) continue;
    const std::string both = std::string(peer) + ",ucx";
    const Arguments found = parsed({"allreduce", "--against", both.c_str()});
    CHECK(found.against == std::vector<std::string>{std::string(peer)});
    CHECK(found.no_peers == std::vector<std::string>{"ucx"});
  }
}

TEST_CASE("p2p on a device exchanges messages, whatever other options say") {
  const Arguments found = parsed({"p2p", "bandwidth", "--device", "cuda"});
  CHECK(found.device == "cuda");
  CHECK(found.p2p.level == P2pLevel::kMessages);
  CHECK(parsed({"p2p", "latency"}).p2p.level == P2pLevel::kSegments);
  CHECK(parsed({"p2p", "latency", "--device", "cuda", "--level", "messages"}).p2p.level ==
        P2pLevel::kMessages);
  for (const char* level : {"segments", "both", "library"}) {
    const std::string refusal = complaint({"p2p", "latency", "--device", "cuda", "--level", level});
    CHECK(mentions(refusal, {"--level " + std::string(level) + " --device cuda: ",
                             "leave --level out, to measure messages"}));
  }
  CHECK(complaint({"p2p", "latency", "--device", "tpu"}) == "--device tpu: expected cuda");
  CHECK(complaint({"p2p", "latency", "--device", ""}) == "--device: expected cuda");
}

TEST_CASE("a parameter server's commands take a device as the others do") {
  for (const char* half : {"push", "pull", "push-pull"}) {
    CHECK(parsed({"ps", half, "--device", "cuda", "--servers", "1"}).device == "cuda");
    CHECK(complaint({"ps", half, "--device", "tpu"}) == "--device tpu: expected cuda");
  }
}

TEST_CASE("limits accepts parts by name") {
  REQUIRE(parsed({"limits"}).limits.empty());
  REQUIRE(parsed({"limits", "--only", "line,tcp"}).limits ==
          std::vector<std::string>{"line", "tcp"});
  REQUIRE(mentions(complaint({"limits", "--only", "disk"}), {"--only disk", "memory"}));
}

TEST_CASE("tune accepts a grid without repeated words") {
  const Arguments found = parsed({"tune", "--out", "table", "--ranks", "4,2,4", "--transport",
                                  "inproc", "--collectives", "alltoall,broadcast"});
  REQUIRE(found.tune.ranks == std::vector<int>{4, 2});
  REQUIRE(found.tune.transports == std::vector<std::string>{"inproc"});
  REQUIRE(found.tune.collectives == std::vector<std::string>{"alltoall", "broadcast"});
  REQUIRE(found.ranks == 4);
  const Arguments all = parsed({"tune", "--out", "table"});
  REQUIRE(all.tune.collectives.size() > 5);
  REQUIRE(all.tune.transports == std::vector<std::string>{"shm", "tcp"});
  REQUIRE(parsed({"allreduce"}).passes != all.passes);
}

TEST_CASE("an algorithm that invariant results exclude is refused where the order matters") {
  const auto with = [](const char* algorithm, const char* type, const char* ranks = "3") {
    return complaint({"allreduce", "--ranks", ranks, "--reproducibility", "invariant",
                      "--algorithm", algorithm, "--type", type});
  };
  REQUIRE(mentions(with("ring", "float32"), {"--algorithm ring", "two_shot, one_shot"}));
  REQUIRE(with("two_shot", "float32") == "nothing");
  REQUIRE(with("ring", "int64") == "nothing");
  REQUIRE(with("ring", "float32", "2") == "nothing");
  REQUIRE(parsed({"scan", "--reproducibility", "ordered"}).reproducibility ==
          Reproducibility::kOrdered);
}

TEST_CASE("a launcher sets the number of ranks") {
  const char* const words[] = {"kolo-bench", "push_pull", "--servers", "2"};
  Arguments found;
  REQUIRE(parse_arguments(4, words, found, 4));
  REQUIRE(found.ranks == 4);
}

TEST_CASE("an error names the first unknown word, whatever follows") {
  REQUIRE(mentions(complaint({"allreduce", "--ranks", "2", "--max-size", "64", "--passes", "2"}),
                   {"allreduce has no option '--max-size'; see"}));
  REQUIRE(mentions(complaint({"allreduce", "-x2", "64"}), {"no option '-x'"}));
  REQUIRE(mentions(complaint({"allreduce", "64", "8"}), {"does not expect '64'"}));
}

TEST_CASE("sizes smaller than an element are refused, but 0 is a size") {
  REQUIRE(mentions(complaint({"allreduce", "--min-bytes", "3"}), {"--min-bytes 3", "4 bytes"}));
  REQUIRE(parsed({"allreduce", "--min-bytes", "0", "--max-bytes", "0"}).max_bytes == 0);
}

TEST_CASE("an error about an impossible value names the flag") {
  REQUIRE(mentions(complaint({"allreduce", "--transport", "pigeon"}),
                   {"--transport pigeon", "inproc"}));
  REQUIRE(
      mentions(complaint({"allreduce", "--algorithm", "guess"}), {"--algorithm guess", "ring"}));
  REQUIRE(mentions(complaint({"allreduce", "--type", "float8"}), {"--type float8", "float8_e4m3"}));
  REQUIRE(mentions(complaint({"allreduce", "--op", "bit_or"}), {"--op bit_or", "integers"}));
  REQUIRE(mentions(complaint({"allreduce", "--op", "median"}), {"--op median", "average"}));
  REQUIRE(mentions(complaint({"allreduce", "--min-bytes", "many"}), {"'many'"}));
  REQUIRE(mentions(complaint({"allreduce", "--min-bytes", "2M", "--max-bytes", "1M"}),
                   {"--min-bytes"}));
  REQUIRE(mentions(complaint({"allreduce", "--factor", "1"}), {"--factor 1"}));
  REQUIRE(mentions(complaint({"allreduce", "--ranks", "0"}), {"--ranks 0"}));
  REQUIRE(mentions(complaint({"allreduce", "--ranks", "two"}), {"--ranks"}));
  REQUIRE(mentions(complaint({"allreduce", "--against", "nobody"}), {"nobody"}));
  REQUIRE(mentions(complaint({"push_pull", "--servers", "2"}), {"--servers 2"}));
  REQUIRE(mentions(complaint({"allreduce", "--passes", "0"}), {"--passes 0"}));
  REQUIRE(mentions(complaint({"allreduce", "--no-such-flag"}), {"--no-such-flag"}));
  REQUIRE(mentions(complaint({"all-reduce"}), {"all-reduce"}));
  REQUIRE(complaint({"all_reduce"}) == "nothing");  // the argument library's own error
  REQUIRE(complaint({}) != "nothing");
  REQUIRE(complaint({"plot"}) != "nothing");
}
