// Pieces of the command line that several commands share: options, and checks that name the flag.
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

// Options as they are typed; what needs a second look is turned into Arguments afterwards.
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
  std::string collectives;  // of tune: lists
  std::string ranks = "2,4,8";
  std::string transports = "shm,tcp";
  std::string limits;  // a list
  std::string p2p_kind;
  std::string p2p_level;  // empty: as it is usual
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
// What is put around the transport, on every rank.
void add_decorators(CLI::App& command, Arguments& result);
// Makes settings of them, for this process and the ranks that it starts.
void use_decorators(const Arguments& result);
// Refuses, before a rank is started, what every rank would refuse or could not write.
void require_settings(const Arguments& arguments);
// The end of a command's help: where the documents are that it names, and the rule of sizes, which
// are of elements or of bytes.
inline constexpr const char* kDocuments =
    "bench/README.md, transports/README.md and so on: in kolo's source, and installed in "
    "share/doc/kolo.";
enum class SizesOf { kElements, kBytes };
void add_end_of_help(CLI::App& command, SizesOf sizes);
void add_sizes(CLI::App& command, Arguments& result, RawOptions& typed);
// Once the type is known.
void take_sizes(const RawOptions& typed, Arguments& result);
void add_type(CLI::App& command, RawOptions& typed);
void add_operation(CLI::App& command, RawOptions& typed);
void add_device(CLI::App& command, RawOptions& typed);
void add_reproducibility(CLI::App& command, RawOptions& typed);
void add_form(CLI::App& command, Arguments& result, RawOptions& typed);
// How often, how long, how exactly, and where to.
void add_timing(CLI::App& command, Arguments& result, RawOptions& typed);

void require(bool holds, const std::string& message);

// Error kUnavailable where this machine cannot run a transport of that name, with the reason.
void require_usable(const std::string& transport);

// Also refuses what is no number: it compares with nothing.
void require_seconds(const char* flag, double seconds, double most);

std::size_t parse_size(const char* flag, const std::string& text);

// "a, b" is a and b. std::invalid_argument, naming the flag, where there is nothing on one side of
// a comma.
std::vector<std::string> split_list(const std::string& flag, const std::string& text);

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

// Throws, saying which there are, and which of them was probably meant.
[[noreturn]] void refuse_name(const std::string& text, const std::vector<std::string>& names,
                              const std::string& flag, Synonyms synonyms = {});

// Finds a value by the name that to_string gives it.
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
