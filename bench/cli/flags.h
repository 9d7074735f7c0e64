// Shared parts of the command line: options and checks that several commands use. Error messages
// name the option.
#pragma once

#include <cstddef>
#include <iterator>
#include <string>
#include <vector>

#include "bench/cli/arguments.h"
#include "transports/base/suggestion.h"

namespace CLI {
class App;
}  // namespace CLI

namespace kolo::bench {

// Options as typed. Those that need conversion or checks become Arguments afterwards.
struct RawOptions {
  std::string bytes;  // a list
  std::string min_bytes = "8";
  std::string max_bytes = "256M";
  std::string segment_bytes = "0";
  std::string against;  // a list
  std::string type = "float32";
  std::string op = "sum";
  std::string reproducibility = "fast";
  std::string form = "blocking";
  std::string draw_bytes = "96K";
  std::string draw_segment_bytes = "16K";
  std::string draw_hosts;
  std::string collectives;  // of tune; a list
  std::string ranks = "2,4,8";
  std::string transports = "shm,tcp";
  std::string table_sizes = "1M,10M,100M,1G";
  std::string limits;  // a list
  std::string p2p_kind;
  std::string p2p_level;  // empty: the default level
  double timeout_s = 60;
  bool is_out_of_place = false;
  bool is_memory_its_own = false;
  std::string device;
  bool is_unchecked = false;
};

inline constexpr std::size_t kLeastSegment = 64;

inline constexpr Reproducibility kReproducibilities[] = {
    Reproducibility::kFast, Reproducibility::kOrdered, Reproducibility::kInvariant};

void add_ranks(CLI::App& command, Arguments& result);
// The decorators around the transport: --shape, --fault, --trace.
void add_decorators(CLI::App& command, Arguments& result);
// Sets the decorators' settings for this process and the ranks that it starts.
void use_decorators(const Arguments& result);
// Refuses settings that every rank would refuse, and files that cannot be written, before a rank
// starts.
void require_settings(const Arguments& arguments);
// The end of a command's help: where the documents are, and how sizes are rounded.
inline constexpr const char* kDocuments =
    "bench/README.md, transports/README.md and so on: in kolo's source, and installed in "
    "share/doc/kolo.";
enum class SizesOf { kElements, kBytes };
void add_end_of_help(CLI::App& command, SizesOf sizes);
void add_sizes(CLI::App& command, Arguments& result, RawOptions& typed);
// Call after the element type is known.
void take_sizes(const RawOptions& typed, Arguments& result);
void add_type(CLI::App& command, RawOptions& typed);
void add_operation(CLI::App& command, RawOptions& typed);
void add_device(CLI::App& command, RawOptions& typed);
void add_reproducibility(CLI::App& command, RawOptions& typed);
void add_form(CLI::App& command, Arguments& result, RawOptions& typed);
// Options for iterations, time, checks and output.
void add_timing(CLI::App& command, Arguments& result, RawOptions& typed);
void add_json_and_timeout(CLI::App& command, Arguments& result, RawOptions& typed);

void require(bool holds, const std::string& message);

// Throws Error kUnavailable, with the reason, if this machine cannot run the transport.
void require_usable(const std::string& transport);

// Also refuses NaN, for which every comparison is false.
void require_seconds(const char* flag, double seconds, double most);

std::size_t parse_size(const char* flag, const std::string& text);

// Splits at commas and removes spaces. std::invalid_argument, naming the flag, for an empty
// element.
std::vector<std::string> split_list(const std::string& flag, const std::string& text);

// The same without duplicates.
std::vector<std::string> each_once(const std::string& flag, const std::string& text);

// The lists of a grid: --ranks 2,4,8 and --transport shm,tcp of the command `command`.
std::vector<int> parse_rank_counts(const std::string& text);
std::vector<std::string> parse_transports(const std::string& text, const std::string& command);

template <typename Value, std::size_t kCount>
std::vector<std::string> words_of(const Value (&values)[kCount]) {
  std::vector<std::string> names;
  for (const Value value : values) names.emplace_back(to_string(value));
  return names;
}

// "sum, average, min"
template <typename Value, std::size_t kCount>
std::string names_of(const Value (&values)[kCount]) {
  std::string names;
  for (const std::string& name : words_of(values)) names += (names.empty() ? "" : ", ") + name;
  return names;
}

// Throws std::invalid_argument with the valid names and a "did you mean" suggestion.
[[noreturn]] void refuse_name(const std::string& text, const std::vector<std::string>& names,
                              const std::string& flag, Synonyms synonyms = {});

// Returns the value whose to_string is `text`; otherwise refuses the name.
template <typename Value, std::size_t kCount>
Value by_name(const std::string& text, const Value (&values)[kCount], const std::string& flag,
              Synonyms synonyms = {}) {
  for (const Value value : values) {
    if (to_string(value) == text) return value;
  }
  refuse_name(text, words_of(values), flag, synonyms);
}

template <typename Names>
void require_name(const std::string& text, const Names& names, const std::string& flag) {
  for (const auto& name : names) {
    if (name == text) return;
  }
  refuse_name(text, std::vector<std::string>(std::begin(names), std::end(names)), flag);
}

}  // namespace kolo::bench
