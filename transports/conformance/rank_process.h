// One rank as a separate process: the victim of a scenario, a survivor, or a rank that ends early
// and in order.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kolo::inline v0::conformance {

inline constexpr std::string_view kFinishEarly = "finish early";

// Arguments after rank_command. The store is a TCP store on this machine.
std::vector<std::string> rank_words(std::string_view transport, int rank, std::uint16_t port,
                                    std::string_view scenario);

// Runs the rank that `words` describe. Returns the exit code: 0 on success, else 1 with the reason
// on standard error. Does not return for a victim.
int be_rank(std::span<const std::string> words);

}  // namespace kolo::inline v0::conformance
