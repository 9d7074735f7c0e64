#include "bench/cli/flags.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <charconv>
#include <stdexcept>
#include <utility>

#include "bench/cli/sizes.h"
#include "bench/measure/call_form.h"
#include "transports/decorators/fault.h"
#include "transports/decorators/shape.h"
#include "transports/error.h"
#include "transports/posix/whole_file.h"
#include "transports/registry.h"
#include "transports/settings.h"

namespace kolo::bench {

void add_ranks(CLI::App& command, Arguments& result) {
  command.add_option("-n,--ranks", result.ranks, "Ranks to start on this host")
      ->capture_default_str();
  command
      .add_option("-t,--transport", result.transport,
                  "inproc (threads), shm, tcp, ..., auto, the path of a library with one "
                  "(./libx.so), or all of them in turn (all)")
      ->capture_default_str();
  add_decorators(command, result);
}

void add_decorators(CLI::App& command, Arguments& result) {
  command.add_option("--shape", result.shape,
                     "The network to emulate: 1Gbit,1ms; hosts:10Gbit,50us (KOLO_SHAPE in "
                     "transports/README.md)");
  command.add_option(
      "--fault", result.fault,
      "Faults to inject: die@rank=1,segment=100 (KOLO_FAULT in transports/README.md)");
  command.add_option("--trace", result.trace,
                     "Write a timeline of every rank's segments to PATH-rankN.json");
}

namespace {

// Refuses ranks in a fault plan that the job does not have.
void require_ranks(const FaultPlan& plan, int ranks) {
  for (const Fault& fault : plan.faults) {
    const int highest = std::max(fault.rank, fault.peer);
    require(highest < ranks, fmt::format("there is no rank {}: this job has {}", highest, ranks));
    require(fault.rank < 0 || fault.rank != fault.peer,
            fmt::format("rank {} cannot be its own peer", fault.rank));
  }
}

// Runs the check and puts the name of the flag or variable before its error message.
template <typename Check>
void named(const std::string& name, const std::string& value, const Check& check) {
  if (value.empty()) return;
  try {
    check(value);
  } catch (const std::invalid_argument& error) {
    throw std::invalid_argument(fmt::format("{} {}: {}", name, value, error.what()));
  }
}

// Refuses a path if no file can be written beside it. Each rank writes one.
void require_writable(const std::string& file) {
  const std::string why = posix::why_unwritable(file);
  require(why.empty(), fmt::format("cannot be written: {}", why));
}

}  // namespace

void use_decorators(const Arguments& result) {
  const auto check_shape_text = [&](const std::string& text) {
    check_shape(parse_shape(text), result.ranks);
  };
  const auto check_fault_text = [&](const std::string& text) {
    require_ranks(parse_faults(text), result.ranks);
  };
  named("--shape", result.shape, check_shape_text);
  named("--fault", result.fault, check_fault_text);
  named("--trace", result.trace, require_writable);
  if (!result.shape.empty()) set_setting("KOLO_SHAPE", result.shape);
  if (!result.fault.empty()) set_setting("KOLO_FAULT", result.fault);
  if (!result.trace.empty()) set_setting("KOLO_TRACE", result.trace);
}

void require_settings(const Arguments& arguments) {
  const Settings settings = read_settings();
  named("KOLO_SHAPE", settings.shape,
        [&](const std::string& text) { check_shape(parse_shape(text), arguments.ranks); });
  named("KOLO_FAULT", settings.fault,
        [&](const std::string& text) { require_ranks(parse_faults(text), arguments.ranks); });
  named("KOLO_TRACE", settings.trace, require_writable);
  named("KOLO_TIMELINE", settings.timeline, require_writable);
}

void add_sizes(CLI::App& command, Arguments& result, RawOptions& typed) {
  command.add_option("-b,--min-bytes", typed.min_bytes, "Smallest size: 8, 32K, 256M")
      ->type_name("SIZE")
      ->capture_default_str();
  command.add_option("-e,--max-bytes", typed.max_bytes, "Largest size")
      ->type_name("SIZE")
      ->capture_default_str();
  command.add_option("-f,--factor", result.factor, "Factor from one size to the next")
      ->capture_default_str();
  command
      .add_option("--bytes", typed.bytes,
                  "Only these sizes: 4K,1M; instead of the three options above")
      ->type_name("SIZES");
}

void add_end_of_help(CLI::App& command, SizesOf sizes) {
  constexpr std::string_view kRule =
      "Sizes are rounded down to whole elements (alltoall: as many for every rank), one at "
      "least;\na line reports the rounded sizes.\n";
  command.footer(std::string(sizes == SizesOf::kElements ? kRule : "") + kDocuments);
}

void take_sizes(const RawOptions& typed, Arguments& result) {
  require(result.factor >> 32 == 0, "--factor: expected 2 to 2^32 - 1");
  result.min_bytes = parse_size("--min-bytes", typed.min_bytes);
  result.max_bytes = parse_size("--max-bytes", typed.max_bytes);
  if (typed.bytes.empty()) return;
  const std::size_t element = element_bytes(result.problem.type);
  for (const std::string& word : split_list("--bytes", typed.bytes)) {
    const std::size_t bytes = parse_size("--bytes", word);
    require(bytes == 0 || bytes >= element,
            fmt::format("--bytes {}: less than one element; {} has {} bytes", word,
                        to_string(result.problem.type), element));
    result.sizes.push_back(bytes);
  }
  result.largest_by = "--bytes";
  const auto [least, most] = std::ranges::minmax(result.sizes);
  result.min_bytes = least;
  result.max_bytes = most;
}

void add_type(CLI::App& command, RawOptions& typed) {
  command.add_option("-d,--type", typed.type, names_of(kElementTypes))->capture_default_str();
}

void add_operation(CLI::App& command, RawOptions& typed) {
  command.add_option("-o,--op", typed.op, names_of(kReduceOps))->capture_default_str();
  command.add_flag("--out-of-place", typed.is_out_of_place,
                   "Input and output in different buffers");
  command.add_flag("--allocated", typed.is_memory_its_own,
                   "kolo's buffers come from Communicator::allocate, which peers can map");
  add_device(command, typed);
}

void add_device(CLI::App& command, RawOptions& typed) {
  command.add_option("--device", typed.device,
                     "cuda: buffers are in the memory of a GPU, one per rank or shared by ranks; "
                     "kolo and nccl work on a stream of it");
}

void add_reproducibility(CLI::App& command, RawOptions& typed) {
  command
      .add_option(
          "--reproducibility", typed.reproducibility,
          names_of(kReproducibilities) + ": whether sums of floats have equal bits in every run")
      ->capture_default_str();
}

void add_form(CLI::App& command, Arguments& result, RawOptions& typed) {
  command.add_option("--form", typed.form, names_of(kCallForms) + ": how kolo is called")
      ->capture_default_str();
  command.add_flag("--captured", result.is_captured,
                   "With --device cuda: also measure kolo's calls captured into a CUDA graph");
  command.add_flag("--overlap", result.is_overlapped,
                   "Compute while an operation is in flight; report how much of it is hidden");
  command.add_flag("--profile", result.is_profiled,
                   "After each size, print work and waits of all ranks by step and channel");
}

void add_timing(CLI::App& command, Arguments& result, RawOptions& typed) {
  command.add_option("--segment-bytes", typed.segment_bytes,
                     "Longest segment, 64 to 1G; 0: the transport's choice");
  command
      .add_option(
          "-i,--iterations", result.iterations,
          "Per size and library, equally many in each pass: 5 in 4 passes are 4; 0: as many as "
          "fit into --seconds")
      ->capture_default_str();
  command
      .add_option("-w,--warmup", result.warmup,
                  "Uncounted iterations before the first pass; 1 before each later pass")
      ->capture_default_str();
  command.add_option("--passes", result.passes, "How often the libraries take turns")
      ->capture_default_str();
  command
      .add_option(
          "--seconds", result.seconds,
          "Per size and library, if --iterations is 0; at most 500 iterations (p2p: 2000) per pass")
      ->capture_default_str();
  command.add_flag("--no-check", typed.is_unchecked, "Do not check the results");
  add_json_and_timeout(command, result, typed);
}

void add_json_and_timeout(CLI::App& command, Arguments& result, RawOptions& typed) {
  command.add_option("--json", result.json,
                     "Append a JSON line per row to this file; -: standard output");
  command
      .add_option("--timeout", typed.timeout_s,
                  "Seconds after which a rank that others wait for is lost")
      ->capture_default_str();
}

void require(bool holds, const std::string& message) {
  if (!holds) throw std::invalid_argument(message);
}

void require_usable(const std::string& transport) {
  const std::string why = why_unusable(transport);
  if (why.empty()) return;
  throw Error(ErrorCode::kUnavailable, kNoPeer,
              fmt::format("--transport {}: cannot be used here: {}; auto takes one that can",
                          transport, why));
}

void require_seconds(const char* flag, double seconds, double most) {
  require(seconds > 0 && seconds <= most,
          fmt::format("{}: expected more than 0 and at most {} seconds", flag, most));
}

std::size_t parse_size(const char* flag, const std::string& text) {
  try {
    return parse_bytes(text);
  } catch (const std::invalid_argument& error) {
    throw std::invalid_argument(fmt::format("{}: {}", flag, error.what()));
  }
}

void refuse_name(const std::string& text, const std::vector<std::string>& names,
                 const std::string& flag, Synonyms synonyms) {
  const bool is_list = text.find(',') != std::string::npos;
  throw std::invalid_argument(fmt::format("{} {}: {}expected one of {}{}", flag, text,
                                          is_list ? "one at a time; " : "", fmt::join(names, ", "),
                                          did_you_mean(suggested_word(text, names, synonyms))));
}

std::vector<std::string> split_list(const std::string& flag, const std::string& text) {
  constexpr const char* kSpaces = " \t\n";
  std::vector<std::string> words;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    std::string word = text.substr(begin, end - begin);
    word.erase(0, std::min(word.find_first_not_of(kSpaces), word.size()));
    word.erase(word.find_last_not_of(kSpaces) + 1);
    require(!word.empty(),
            fmt::format("{} '{}': there is nothing on one side of a comma", flag, text));
    words.push_back(std::move(word));
    begin = end + 1;
  }
  return words;
}

std::vector<std::string> each_once(const std::string& flag, const std::string& text) {
  std::vector<std::string> words;
  for (const std::string& word : split_list(flag, text)) {
    if (std::ranges::find(words, word) == words.end()) words.push_back(word);
  }
  return words;
}

std::vector<int> parse_rank_counts(const std::string& text) {
  std::vector<int> counts;
  for (const std::string& word : each_once("--ranks", text)) {
    int ranks = 0;
    const char* end = word.data() + word.size();
    const auto [rest, error] = std::from_chars(word.data(), end, ranks);
    require(error == std::errc{} && rest == end && ranks >= 2 && ranks <= 1024,
            fmt::format("--ranks {}: expected numbers from 2 to 1024, as in 2,4,8", word));
    counts.push_back(ranks);
  }
  return counts;
}

std::vector<std::string> parse_transports(const std::string& text, const std::string& command) {
  std::vector<std::string> names = each_once("--transport", text);
  for (const std::string& name : names) {
    require(name != "all",
            fmt::format("--transport all: {} takes a list, such as shm,tcp", command));
    require_name(name, transport_names(), "--transport");
  }
  return names;
}

}  // namespace kolo::bench
