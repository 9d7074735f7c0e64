// The flags: synonyms, defaults, errors.
#include "train/options.h"

#include "test/support/catch.h"
#include "transports/registry.h"

namespace {

using namespace kolo::train;

Options parse(std::vector<std::string> words) { return parse_options(words).options; }

std::vector<std::string> names_of(const std::vector<Arm>& arms) {
  std::vector<std::string> names;
  for (const Arm& arm : arms) names.push_back(arm.name());
  return names;
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("compare without flags compares a ring with servers, two ranks, on rendered digits") {
  const Options options = parse({"compare"});
  CHECK(names_of(options.arms) == Names{"ring", "ps"});
  CHECK(options.ranks == 2);
  CHECK(options.dataset == "digits");
  CHECK(options.model == "resnet50");
  CHECK(options.stem == "imagenet");
  CHECK(options.report == "report");
  CHECK(options.threads >= 1);
  CHECK(options.samples_per_iteration() == 2 * options.batch_size);
}

TEST_CASE("train without flags runs a ring and writes no report") {
  const Options options = parse({"train"});
  CHECK(names_of(options.arms) == Names{"ring"});
  CHECK(options.report.empty());
}

TEST_CASE("the flags of other projects' scripts mean the same") {
  const Options options =
      parse({"train", "--n_gpus", "3", "--batch_size", "8", "--train_size", "99", "--epochs", "2",
             "--strategy", "param_server", "--weight_decay", "0.5"});
  CHECK(options.ranks == 3);
  CHECK(options.batch_size == 8);
  CHECK(options.train_size == 99);
  CHECK(options.epochs == 2);
  CHECK(options.weight_decay == 0.5);
  CHECK(names_of(options.arms) == Names{"ps"});
  CHECK(names_of(parse({"compare", "--strategies", "ring_all_reduce,param_server"}).arms) ==
        Names{"ring", "ps"});
}

TEST_CASE("an optimizer sets the defaults of learning rate and weight decay") {
  const auto rates = [](std::vector<std::string> words) {
    words.insert(words.begin(), "train");
    const Options options = parse(words);
    return std::pair(options.lr, options.weight_decay);
  };
  CHECK(rates({}) == std::pair(0.01, 1e-4));
  CHECK(rates({"--optimizer", "adamw"}) == std::pair(0.001, 0.01));
  CHECK(rates({"--optimizer", "lars"}) == std::pair(1.0, 1e-4));
  CHECK(rates({"--optimizer", "adamw", "--lr", "2", "--weight-decay", "0"}) == std::pair(2.0, 0.0));
}

TEST_CASE("flags of another optimizer or schedule are rejected, and servers that cannot run it") {
  const auto refuses = [](std::vector<std::string> words, const std::string& message) {
    words.insert(words.begin(), "compare");
    CHECK_THROWS_WITH(parse_options(words), message);
  };
  refuses({"--optimizer", "adamw", "--momentum", "0.5"},
          "--optimizer adamw does not use --momentum; remove it");
  refuses({"--optimizer", "lars", "--nesterov"},
          "--optimizer lars does not use --nesterov; remove it");
  refuses({"--lr-power", "1"}, "--lr-schedule cosine does not use --lr-power; remove it");
  refuses({"--lr-schedule", "polynomial", "--lr-step-factor", "0.5"},
          "--lr-schedule polynomial does not use --lr-step-factor; remove it");
  refuses({"--nesterov", "--momentum", "0"}, "--nesterov needs a --momentum above 0");
  refuses({"--optimizer", "lars", "--strategies", "ring,ps:optimizer=server"},
          "--optimizer lars: it needs whole layers, and a server of 'ps:optimizer=server' has "
          "parts of them; take sgd or adamw, or optimizer=worker");
  refuses({"--optimizer", "lars", "--strategies", "sharded"},
          "--optimizer lars: it needs whole layers, and a worker of 'sharded' has parts of them; "
          "take sgd or adamw");
}

TEST_CASE("the flag --batch-size is per rank, --global-batch is of all ranks") {
  CHECK(parse({"train", "--ranks", "4", "--batch-size", "8"}).samples_per_iteration() == 32);
  CHECK(parse({"train", "--ranks", "4", "--global-batch", "30"}).samples_per_iteration() == 30);
}

TEST_CASE("the last of a repeated flag counts") {
  CHECK(parse({"train", "--ranks", "4", "--ranks", "3"}).ranks == 3);
}

TEST_CASE("an arm sets the placement of its servers and of the optimizer") {
  const auto arms = parse({"compare", "--strategies",
                           "ps,ps:sharded,ps:servers=3,ps:everywhere,ps:optimizer=server,ps:"
                           "everywhere:optimizer=server"})
                        .arms;
  REQUIRE(arms.size() == 6);
  CHECK((arms[0].placement == ServerPlacement::dedicated && arms[0].servers == 1));
  CHECK((arms[1].placement == ServerPlacement::dedicated && arms[1].servers == 2));
  CHECK((arms[2].placement == ServerPlacement::dedicated && arms[2].servers == 3));
  CHECK((arms[3].placement == ServerPlacement::everywhere && arms[3].servers == 0));
  CHECK((arms[4].servers == 1 && arms[4].update_at == UpdateAt::server));
  CHECK(
      (arms[5].placement == ServerPlacement::everywhere && arms[5].update_at == UpdateAt::server));
}

TEST_CASE("split has dedicated servers, one or as many as the arm says, in any order of words") {
  const auto arms = parse({"compare", "--ranks=3", "--strategies",
                           "ps:split,ps:split:servers=2,ps:servers=3:split:optimizer=server"})
                        .arms;
  CHECK(names_of(arms) ==
        Names{"ps:split", "ps:split:servers=2", "ps:split:servers=3:optimizer=server"});
  for (const Arm& arm : arms) CHECK(arm.placement == ServerPlacement::split);
  CHECK((arms[0].servers == 1 && arms[1].servers == 2 && arms[2].servers == 3));
  const auto by_flag =
      parse({"train", "--ranks=3", "--ps-mode=split", "--servers=2", "--strategies=ps"});
  CHECK(names_of(by_flag.arms) == Names{"ps:split:servers=2"});
}

TEST_CASE("an arm of ps sets the rule by which servers apply gradients") {
  using Kind = kolo::Consistency::Kind;
  const auto arms = parse({"compare", "--strategies",
                           "ps:async,ps:ssp=3,ps:servers=2:backup=1,ps:optimizer=server:ssp=0"})
                        .arms;
  CHECK(names_of(arms) == Names{"ps:async", "ps:ssp=3", "ps:servers=2:backup=1", "ps:ssp=0"});
  CHECK(arms[0].rule.kind == Kind::kAsynchronous);
  CHECK((arms[1].rule.kind == Kind::kBounded && arms[1].rule.bound == 3));
  CHECK((arms[2].rule.kind == Kind::kBackup && arms[2].servers == 2));
  for (const Arm& arm : arms) CHECK(arm.update_at == UpdateAt::server);
}

TEST_CASE("an arm of all-reduce sets its algorithm and its rung of synchronization") {
  const auto arms =
      parse({"compare", "--strategies",
             "ring:sync=naive,ring:sync=flat,ring:sync=overlap,ring:sync=bucketed,tree:sync=naive,"
             "hierarchical,auto"})
          .arms;
  CHECK(names_of(arms) == Names{"ring:sync=naive", "ring:sync=flat", "ring:sync=overlap", "ring",
                                "tree:sync=naive", "hierarchical", "auto"});
  CHECK(arms[0].sync == Sync::naive);
  CHECK(arms[3].sync == Sync::bucketed);
  CHECK(parse({"train", "--reproducibility", "invariant"}).reproducibility ==
        kolo::Reproducibility::kInvariant);
}

TEST_CASE("flags set the defaults of ps, and its words override them") {
  const auto arms = parse({"compare", "--ps-mode", "everywhere", "--ps-optimizer", "server",
                           "--strategies", "ps,ps:dedicated"})
                        .arms;
  CHECK(names_of(arms) == Names{"ps:everywhere:optimizer=server", "ps:optimizer=server"});
  CHECK(parse({"train", "--strategies", "ps", "--servers", "3"}).arms[0].servers == 3);
}

TEST_CASE("the arguments of a rank parse to its arm, whatever the other flags are") {
  for (const char* text : {"ring", "ring:sync=naive", "auto", "ps:async", "ps:servers=2:ssp=3",
                           "ps", "ps:sharded", "ps:servers=5", "ps:split:servers=3",
                           "ps:everywhere:optimizer=server", "ps:optimizer=server"}) {
    const Arm arm = parse_arms(text, {}).front();
    const std::vector<std::string> given{"compare",   "--ranks",        "3",
                                         "--ps-mode", "everywhere",     "--servers",
                                         "4",         "--ps-optimizer", "server"};
    const Options options = parse(arguments_of_rank(given, arm, 77, 9, 10));
    CHECK(options.command == Command::train);
    CHECK(options.arms == std::vector<Arm>{arm});
    CHECK(names_of(options.arms) == Names{text});
    CHECK(options.seed == 77);
    CHECK(options.events_fd == 9);
    CHECK(options.turns_fd == 10);
    CHECK(options.report.empty());
  }
}

TEST_CASE("a straggler is a worker and a factor of at least 1") {
  const Options options = parse({"compare", "--ranks", "3", "--straggle", "factor=1.5,rank=2"});
  CHECK(options.straggle.rank == 2);
  CHECK(options.straggle.factor == 1.5);
  CHECK(options.straggle.text() == "rank=2,factor=1.5");
  CHECK_FALSE(parse({"compare"}).straggle.is_set());
  for (const char* text :
       {"rank=1", "factor=2", "rank=1,factor=0.9", "rank=-1,factor=2", "rank=1,factor=2,speed=3",
        "rank=1,rank=0,factor=2", "1,1.5", "rank=1,factor=nan", "rank=1,factor=2000",
        "rank=1.5,factor=2", "rank=1,factor=2,"}) {
    INFO(text);
    CHECK_THROWS_WITH(
        parse({"train", "--straggle", text}),
        ContainsSubstring("--straggle: expected rank=R,factor=F") && ContainsSubstring(text));
  }
  CHECK_THROWS_WITH(parse({"train", "--ranks", "2", "--straggle", "rank=2,factor=2"}),
                    "--straggle rank=2,factor=2: the rank must be a worker, from 0 to 1");
}

TEST_CASE("unknown values are rejected with the list of known ones") {
  const auto refuses = [](std::vector<std::string> words, const std::string& part) {
    INFO(part);
    CHECK_THROWS_WITH(parse_options(words), ContainsSubstring(part));
    CHECK_THROWS_AS(parse_options(words), UsageError);
  };
  refuses({"dance"},
          "unknown command 'dance'; expected one of compare, train, versus, crossover, ");
  refuses({}, "a command is missing");
  refuses({"train", "--strategies", "star"},
          "unknown strategy 'star'; expected one of ring (ring_all_reduce), ps (param_server)");
  refuses({"train", "--transport", "pigeon"},
          "--transport: unknown transport 'pigeon'; expected one of auto, ");
  refuses({"train", "--model", "vgg"},
          "--model: unknown model 'vgg'; expected one of resnet18, resnet34, "
          "resnet50, resnet101, cnn, mlp, small");
  refuses({"train", "--stem", "x"}, "expected one of imagenet, cifar");
  refuses({"train", "--backend", "x"}, "--backend: unknown backend 'x'; expected one of auto, ");
  refuses({"train", "--lr-schedule", "x"}, "expected one of constant, step, cosine, polynomial");
  refuses({"train", "--ps-mode", "x"}, "expected one of dedicated, sharded, everywhere, split");
  refuses({"train", "--strategies", "ps", "--ps-optimizer", "x"}, "expected one of worker, server");
  refuses({"train", "--strategies", "ps:left"}, "unknown word 'left'");
  refuses({"train", "--no-such-flag"}, "--no-such-flag");
  refuses({"train", "--ranks"}, "--ranks needs a value; see kolo-train train --help");
  refuses({"compare", "--report="}, "--report needs a value");
  refuses({"compare", "--rank", "2"},
          "compare does not expect '--rank'; did you mean --ranks?; see kolo-train");
  refuses({"train", "--modle", "small"}, "'--modle'; did you mean --model?");
  refuses({"train", "--model", "small", "--modle", "small"}, "'--modle'; did you mean --model?");
  refuses({"compaer"}, "; did you mean compare?");
  refuses({"train", "--transport", "smh"}, "; did you mean shm?");
  refuses({"train", "--transport", "shm,tcp"},
          "unknown transport 'shm,tcp'; one at a time; expected");
  refuses({"train", "--ranks", "2,4"}, "from 1 to 1024, one at a time, got '2,4'");
  refuses({"train", "--model", "resnet"}, "; did you mean resnet18?");
  refuses({"train", "--strategies", "rign"}, "; did you mean ring?");
  refuses({"train", "--strategies", "ring:sync=naiv"}, "prioritized, fusion; did you mean naive?");
  refuses({"train", "--strategies", "ring:snyc=naive"}, "ring takes sync=naive, sync=flat");
  refuses({"train", "--strategies", "tree:servers=2"}, "arms may differ in their strategy only");
  refuses({"train", "--strategies", "ps:sync=flat"}, "arms may differ in their strategy only");
  refuses({"train", "--reproducibility", "x"}, "expected one of fast, ordered, invariant");
  refuses({"train", "--strategies", "ps:shardd"},
          "optimizer=server, async, ssp=S, backup=B; did you mean sharded?");
  refuses({"train", "--strategies", "ps:server=3"}, "; did you mean servers=3?");
  refuses({"train", "--strategies", "ps:optimiser=server"}, "; did you mean optimizer=server?");
  refuses({"train", "--strategies", "ps:optimizer=servr"}, "; did you mean server?");
  refuses({"train", "--strategies", "ps:lr=0.1"}, "arms may differ in their strategy only");
  refuses({"train", "--strategies", "ps", "--ps-mode", "everywere"}, "; did you mean everywhere?");
  refuses({"train", "--strategies", "ps", "--ps-optimizer", "workers"}, "; did you mean worker?");
  refuses({"train", "--stem", "imagnet"}, "; did you mean imagenet?");
  refuses({"train", "--lr-schedule", "const"}, "; did you mean constant?");
  refuses({"train", "--backend", "referense"}, "; did you mean reference?");
  refuses({"train", "--strategies", "psx"}, "ps takes words: ps:dedicated, ps:sharded");
  refuses({"train", "--strategies", "ring,ps:servers=0"},
          "--strategies: 'ps:servers=0': servers=0: expected a number from 1 to 64");
  refuses({"compare", "ring", "ps"}, "compare does not expect 'ring'");
}

TEST_CASE("local-sgd takes a number of steps, sharded and dataparallel take nothing") {
  const auto arms = parse({"compare", "--strategies", "local-sgd:8,data_parallel,sharded"}).arms;
  CHECK(names_of(arms) == Names{"local-sgd:8", "dataparallel", "sharded"});
  CHECK(arms[0].local_steps == 8);
  for (const Arm& arm : arms) CHECK(parse_arms(arm.full_name(), {}).front() == arm);
  for (const std::string arm : {"local-sgd", "local-sgd:", "local-sgd:0", "local-sgd:x",
                                "local-sgd:1000001", "local-sgd:4:8", "local-sgd:sync=flat"}) {
    INFO(arm);
    CHECK_THROWS_WITH(parse_options({"train", "--strategies", arm}),
                      ContainsSubstring("expected local-sgd:H, where the parameters"));
  }
  CHECK_THROWS_WITH(parse_options({"train", "--strategies", "dataparallel:sync=flat"}),
                    ContainsSubstring("dataparallel takes no words; remove 'sync=flat'"));
  CHECK_THROWS_WITH(parse_options({"train", "--strategies", "sharded:servers=2"}),
                    ContainsSubstring("sharded takes no words; remove 'servers=2'"));
}

TEST_CASE("a word that occurs twice in an arm is rejected") {
  for (const std::string arm : {"ring:sync=naive:sync=flat", "ps:servers=2:servers=3",
                                "ps:optimizer=server:optimizer=worker", "ps:async:async"}) {
    INFO(arm);
    CHECK_THROWS_WITH(parse_options({"train", "--strategies", arm}),
                      ContainsSubstring("twice; remove one"));
  }
}

TEST_CASE("impossible placements of servers are rejected") {
  for (const auto& [arm, part] : std::vector<std::pair<std::string, std::string>>{
           {"ps:split", "'ps:split': split needs at least 3 workers, not 2; raise --ranks"},
           {"ps:split:everywhere", "split and everywhere exclude each other"},
           {"ps:servers=2:everywhere", "sets a number of servers, but 'everywhere' has one"},
           {"ps:split:async", "async needs dedicated servers, and split has servers in workers"},
           {"ps:split:ssp=1", "ssp=1 needs dedicated servers"},
           {"ps:backup=1:split", "backup=1 needs dedicated servers"},
           {"ps:spilt", "; did you mean split?"}}) {
    INFO(arm);
    CHECK_THROWS_WITH(parse_options({"train", "--strategies", arm}), ContainsSubstring(part));
  }
}

TEST_CASE("impossible rules of servers are rejected") {
  for (const auto& [arm, part] : std::vector<std::pair<std::string, std::string>>{
           {"ps:async:ssp=2", "async and ssp=2 exclude each other"},
           {"ps:ssp=x", "ssp=x: expected a number from 0 to 1000"},
           {"ps:backup=", "backup=: expected a number"},
           {"ps:backup=2", "at least one of the 2 workers must count"},
           {"ps:everywhere:async", "async needs dedicated servers"},
           {"ps:async:optimizer=worker", "remove optimizer=worker"},
           {"ps:asinc", "; did you mean async?"}}) {
    INFO(arm);
    CHECK_THROWS_WITH(parse_options({"train", "--strategies", arm}), ContainsSubstring(part));
  }
}

TEST_CASE("a misspelled data set gets a suggestion") {
  const auto asks = [](const std::string& dataset, const std::string& meant) {
    CHECK_THROWS_WITH(
        parse_options({"train", "--dataset", dataset}),
        ContainsSubstring(
            "; expected one of digits, svhn:DIR, mnist:DIR, "
            "cifar10:DIR, imagefolder:DIR, synthetic[:HxWxC[:CLASSES]]; did you mean " +
            meant));
  };
  asks("digit", "digits?");
  asks("digists:/some/where", "digits?");
  asks("svnh:/some/where", "svhn:/some/where?");
  asks("SVHN:data", "svhn:data?");
  asks("svh", "svhn:DIR?");
  asks("mnits:/some/where", "mnist:/some/where?");
  asks("MNIST", "mnist:DIR?");
  asks("sythetic", "synthetic[:HxWxC[:CLASSES]]?");
  asks("/", "svhn:/ or mnist:/ or cifar10:/ or imagefolder:/?");  // a folder without a kind
  for (const std::string other : {"letters", "/no/such/folder", "letters:/"}) {
    CHECK_THROWS_WITH(parse_options({"train", "--dataset", other}),
                      "--dataset: unknown data set '" + other +
                          "'; expected one of digits, svhn:DIR, mnist:DIR, cifar10:DIR, "
                          "imagefolder:DIR, synthetic[:HxWxC[:CLASSES]]");
  }
}

TEST_CASE("a flag without effect is rejected") {
  const auto refusal = [](std::vector<std::string> words) -> std::string {
    try {
      parse_options(words);
    } catch (const UsageError& error) {
      return error.what();
    }
    return "nothing";
  };
  const std::string none = ": none of the arms (ring) uses it; remove it";
  CHECK(refusal({"train", "--strategy=ring:sync=flat", "--bucket-bytes=99"}) ==
        "--bucket-bytes: none of the arms (ring:sync=flat) uses it; remove it");
  CHECK(refusal({"compare", "--strategies=ring:sync=flat,ring", "--bucket-bytes=99"}) == "nothing");
  CHECK(refusal({"train", "--strategy=local-sgd:4", "--hash-every=9"}) ==
        "--hash-every: none of the arms (local-sgd:4) uses it; remove it");
  CHECK(refusal({"compare", "--strategies=ps:async,ps:backup=1", "--reproducibility=ordered"}) ==
        "--reproducibility: none of the arms (ps:async, ps:backup=1) uses it; remove it");
  CHECK(refusal({"compare", "--strategies=ps:ssp=0", "--reproducibility=ordered"}) == "nothing");
  CHECK(refusal({"compare", "--strategies=ring", "--ps-mode=sharded"}) == "--ps-mode" + none);
  CHECK(refusal({"train", "--servers=3"}) == "--servers" + none);
  CHECK(refusal({"train", "--ps_optimizer=server"}) == "--ps-optimizer" + none);
  CHECK(refusal({"compare", "--strategies=ring,ps:everywhere", "--servers=3"}) ==
        "--servers: none of the arms (ring, ps:everywhere) uses it; remove it");
  CHECK(refusal({"compare", "--ps-mode=everywhere", "--servers=3"}).starts_with("--servers: none"));
  CHECK(refusal({"train", "--strategies=ps:optimizer=worker", "--ps-optimizer=server"})
            .starts_with("--ps-optimizer: none"));
  CHECK(refusal({"train", "--model=small", "--stem=cifar"}) ==
        "--model small does not use --stem; remove it");
  CHECK(refusal({"train", "--dataset=cifar10:/x", "--image-size=64"}) ==
        "--dataset cifar10 does not use --image-size; remove it");
  CHECK(refusal({"train", "--dataset=imagefolder:/x", "--image-size=64"}) == "nothing");
  CHECK(refusal({"train", "--dataset=mnist:/x", "--augment=crop,flip"}) ==
        "--augment crop,flip: mirrored digits are no digits, and mnist has digits; take crop");
  CHECK(refusal({"train", "--augment=crop"}) == "nothing");
  CHECK(refusal({"train", "--dataset=cifar10:/x", "--augment=crop,flip"}) == "nothing");
  CHECK(refusal({"compare", "--no-report", "--report=x"}) ==
        "--no-report cannot be combined with --report; remove one of them");
  CHECK(refusal({"train", "--batch-size=8", "--global_batch=64"}) ==
        "--global-batch cannot be combined with --batch-size; remove one of them");
  CHECK(refusal({"train", "--progress-thread", "--no-progress-thread"}) ==
        "--no-progress-thread cannot be combined with --progress-thread; remove one of them");
  CHECK(refusal({"train", "--no-progress-thread", "--no-progress-thread"}) == "nothing");
  for (const char* flag : {"--ps-mode=dedicated", "--ps-mode=sharded", "--ps-mode=everywhere",
                           "--servers=1", "--servers=64", "--ps-optimizer=worker"}) {
    INFO(flag);
    CHECK(refusal({"compare", flag}) == "nothing");  // of ring and ps
  }
  CHECK(refusal({"train", "--stem=cifar"}) == "nothing");
}

TEST_CASE("an empty value is an error, not the default") {
  CHECK_THROWS_WITH(parse_options({"compare", "--strategies", ""}),
                    "--strategies: expected arms, as ring,ps");
  CHECK_THROWS_WITH(parse_options({"compare", "--report", ""}),
                    "--report: expected a folder; --no-report writes none");
  CHECK_THROWS_WITH(parse_options({"compare", "--strategies", "ring,"}),
                    "--strategies 'ring,': an arm is missing beside a comma");
}

TEST_CASE("an arm may have spaces around it") {
  CHECK(names_of(parse_arms(" ring, ps:everywhere ", {})) == Names{"ring", "ps:everywhere"});
}

TEST_CASE("an arm keeps its name") {
  for (const char* text : {"ps:sharded", "ps:servers=2", "ps:servers=2:optimizer=server",
                           "ps:sharded:optimizer=server", "ps:sharded:servers=3"}) {
    CHECK(names_of(parse_arms(text, {})) == Names{text});
  }
  CHECK_THROWS_WITH(parse_arms("ps:sharded,ps:servers=2", {}), ContainsSubstring("twice"));
}

TEST_CASE("the help of flags shows their defaults") {
  const std::string help = parse_options({"compare", "--help"}).text;
  CHECK(help.find("{false}") == std::string::npos);
  for (const char* said : {"[26214400]", "[1048576, at most --bucket-bytes]", "[no]",
                           "cores / ranks [0]", "whole epochs [0]"}) {
    CHECK_THAT(help, ContainsSubstring(said));
  }
}

TEST_CASE("invalid numbers are rejected with the name of their flag") {
  const auto refuses = [](const std::string& flag, const std::string& value) {
    INFO(flag << " " << value);
    CHECK_THROWS_WITH(parse_options({"train", flag + "=" + value}), ContainsSubstring(flag));
  };
  for (const char* flag : {"--ranks", "--seeds", "--eval-every"}) refuses(flag, "0");
  for (const char* flag : {"--eval-every", "--hash-every", "--skip-steps"}) {
    CHECK_THROWS_WITH(parse_options({"train", std::string(flag) + "=9223372036854775807"}),
                      ContainsSubstring("expected a whole number from"));
  }
  for (const char* flag : {"--batch-size", "--epochs", "--steps", "--train-size", "--test-size",
                           "--lr", "--weight-decay", "--warmup-epochs", "--threads",
                           "--bucket-bytes", "--skip-steps", "--timeout", "--servers"}) {
    refuses(flag, "-1");
  }
  // A given 0 is not taken for "not given".
  for (const char* flag :
       {"--batch-size", "--global-batch", "--epochs", "--train-size", "--test-size", "--lr",
        "--bucket-bytes", "--first-bucket-bytes", "--servers"}) {
    refuses(flag, "0");
  }
  refuses("--momentum", "1");
  refuses("--timeout", "0");
  refuses("--epochs", "many");
  refuses("--global-batch", "1");
  refuses("--lr", "nan");
}

TEST_CASE("the shortest timeout is one millisecond") {
  CHECK(parse_options({"train", "--timeout=1e-9"}).options.timeout == std::chrono::milliseconds(1));
  CHECK(parse_options({"train", "--timeout=1.5"}).options.timeout ==
        std::chrono::milliseconds(1500));
}

TEST_CASE("an error message says what was expected and what was given") {
  CHECK_THROWS_WITH(parse_options({"train", "--epochs=0"}),
                    "--epochs: expected a whole number of at least 1, got '0'");
  CHECK_THROWS_WITH(parse_options({"train", "--ranks=2000"}),
                    "--ranks: expected a whole number from 1 to 1024, got '2000'");
  CHECK_THROWS_WITH(parse_options({"train", "--lr=fast"}),
                    "--lr: expected a number above 0, got 'fast'");
  CHECK_THROWS_WITH(parse_options({"train", "--warmup-epochs=1e300"}),
                    ContainsSubstring("below 1000000"));
  CHECK_THROWS_WITH(parse_options({"train", "--momentum=1"}),
                    "--momentum: expected a number of at least 0 and below 1, got '1'");
}

TEST_CASE("a transport between threads cannot connect kolo-train's ranks") {
  CHECK_THROWS_WITH(check_transport(parse({"train", "--transport=inproc"})),
                    Catch::Matchers::StartsWith("--transport inproc: ") &&
                        ContainsSubstring("expected one of shm, "));
  CHECK_NOTHROW(check_transport(parse({"train", "--transport=tcp"})));
}

TEST_CASE("a transport that cannot run on this machine is rejected with the reason") {
  for (const kolo::TransportFact& fact : kolo::transport_facts()) {
    if (fact.why_unusable.empty()) continue;
    CHECK_THROWS_WITH(check_transport(parse({"train", "--transport=" + fact.name})),
                      "--transport " + fact.name + ": cannot be used here: " + fact.why_unusable +
                          "; auto takes one that can");
  }
}

TEST_CASE("an arm that differs in more than its strategy is rejected") {
  for (const char* text :
       {"ring:lr=0.1,ps", "ring,ps:batch-size=8", "ring:seed=3,ps", "ring,ps:transport=x"}) {
    INFO(text);
    CHECK_THROWS_WITH(parse_options({"compare", "--strategies", text}),
                      ContainsSubstring("may differ in their strategy only"));
  }
  CHECK_THROWS_WITH(parse_options({"compare", "--strategies", "ring,ring"}),
                    ContainsSubstring("twice"));
  CHECK_THROWS_WITH(parse_options({"train", "--strategies", "ring,ps"}),
                    ContainsSubstring("use compare"));
  CHECK_THROWS_WITH(parse_options({"train", "--strategies", "ps:everywhere:servers=2"}),
                    ContainsSubstring("everywhere"));
  CHECK_THROWS_WITH(parse_options({"train", "--strategies", "ps:sharded:servers=1"}),
                    ContainsSubstring("at least two"));
  CHECK_THROWS_WITH(parse_options({"train", "--strategies", "ring:dedicated"}),
                    ContainsSubstring("ring takes sync=naive"));
}
