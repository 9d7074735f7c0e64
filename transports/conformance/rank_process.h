// One rank as a process of its own: the victim of a scenario, a survivor, or a rank that ends early
// and in good order.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kolo::conformance {

inline constexpr std::string_view kFinishEarly = "finish early";

// The words that rank_command is followed by: the store is a TCP store on this machine.
std::vector<std::string> rank_words(std::string_view transport, int rank, std::uint16_t port,
                                    std::string_view scenario);

// Is the rank that these words say; the exit code: 0 where all went as it must, else 1, and why on
// standard error. Does not return from the part of a victim.
int be_rank(std::span<const std::string> words);

}  // namespace kolo::conformance
