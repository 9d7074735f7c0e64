#include "transports/launch/hosts.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string_view>

#include "transports/posix/host/addresses.h"
#include "transports/posix/host/identity.h"
#include "transports/posix/socket.h"

namespace kolo::inline v0::launch {
namespace {

constexpr std::string_view kSlots = "slots=";
constexpr int kMostSlots = 4096;

bool read_number(std::string_view text, int low, int high, int& number) {
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && rest == text.data() + text.size() && number >= low &&
         number <= high;
}

// The host and its slots; an empty name for a line without a host.
HostShare parse_line(const std::string& line, const std::string& place) {
  std::istringstream words(line.substr(0, line.find('#')));
  HostShare share;
  std::string slots, rest;
  words >> share.name >> slots >> rest;
  const bool is_wrong =
      share.name.starts_with('-') || !rest.empty() ||
      (!slots.empty() &&
       (!slots.starts_with(kSlots) ||
        !read_number(std::string_view(slots).substr(kSlots.size()), 1, kMostSlots, share.ranks)));
  if (is_wrong) {
    throw std::invalid_argument(
        fmt::format("{}: '{}' is not a host; expected HOST, or HOST slots=N with N from 1 to {}",
                    place, line, kMostSlots));
  }
  return share;
}

bool is_passed_on(std::string_view variable) {
  constexpr std::array kBeginnings = {
      "KOLO_", "UCX_", "FI_", "CUDA_", "OMP_", "PATH=", "LD_LIBRARY_PATH="};
  return !variable.starts_with("KOLO_STORE=") &&
         std::ranges::any_of(
             kBeginnings, [&](const char* beginning) { return variable.starts_with(beginning); });
}

std::string passed_variables() {
  std::string words;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    if (is_passed_on(*entry)) words += " " + shell_word(*entry);
  }
  return words;
}

const char* name_of(Binding binding) {
  switch (binding) {
    case Binding::kAuto:
      return "auto";
    case Binding::kNone:
      return "none";
    case Binding::kCores:
      return "cores";
    case Binding::kNodes:
      return "nodes";
  }
  return "auto";
}

bool is_this_host(const std::string& name) {
  return name == "localhost" || name == posix::host_name();
}

}  // namespace

std::string shell_word(const std::string& text) {
  std::string word = "'";
  for (const char c : text) {
    if (c == '\'') {
      word += "'\\''";
    } else {
      word += c;
    }
  }
  return word + "'";
}

std::vector<HostShare> read_hosts(const std::string& path, int ranks) {
  std::ifstream file(path);
  if (!file) throw std::invalid_argument(fmt::format("--hosts {}: it cannot be read", path));
  std::vector<HostShare> shares;
  std::set<std::string> names;
  int slots = 0;
  int number = 0;
  for (std::string line; std::getline(file, line);) {
    HostShare share = parse_line(line, fmt::format("--hosts {}, line {}", path, ++number));
    if (share.name.empty()) continue;
    if (!names.insert(share.name).second) {
      throw std::invalid_argument(
          fmt::format("--hosts {}, line {}: the host {} comes twice", path, number, share.name));
    }
    share.first_rank = slots;
    slots += share.ranks;
    shares.push_back(std::move(share));
  }
  if (slots == 0 || ranks > slots) {
    throw std::invalid_argument(
        fmt::format("--hosts {} has {} slots, too few for {} ranks: add hosts, or slots=N behind "
                    "them",
                    path, slots, std::max(ranks, 1)));
  }
  const int size = ranks == 0 ? slots : ranks;
  std::erase_if(shares, [size](const HostShare& share) { return share.first_rank >= size; });
  shares.back().ranks = size - shares.back().first_rank;
  return shares;
}

std::vector<std::string> command_for(const HostShare& share, const LaunchRequest& request,
                                     int store_port) {
  const bool is_here = is_this_host(share.name);
  // The shell there knows the address from which ssh came. Other remote shells do not tell it.
  const std::string launcher =
      is_here ? posix::loopback_host() : "${SSH_CONNECTION:-" + posix::host_name() + "}";
  std::string line = fmt::format(
      "cd {} && launcher={} && exec env{} {} --agent \"{},{},{},${{launcher%% *}}\" -n {} --bind "
      "{} "
      "--grace {}{} --",
      shell_word(std::filesystem::current_path().string()), launcher, passed_variables(),
      shell_word(own_program()), share.first_rank, request.ranks, store_port, share.ranks,
      name_of(request.binding), static_cast<double>(request.grace.count()) / 1000,
      request.output == RankOutput::kRankZeroPlain ? " --plain" : "");
  for (const std::string& word : request.command) line += " " + shell_word(word);
  if (is_here) return {"sh", "-c", line};
  std::vector<std::string> words;
  std::istringstream shell(request.remote_shell);
  for (std::string word; shell >> word;) words.push_back(word);
  words.push_back(share.name);
  words.push_back("exec sh -c " + shell_word(line));
  return words;
}

PartOfJob parse_part(const std::string& text) {
  std::istringstream words(text);
  std::array<std::string, 3> numbers;
  for (std::string& number : numbers) std::getline(words, number, ',');
  std::string host;
  std::getline(words, host);
  PartOfJob part;
  int port = 0;
  constexpr int kMostRanks = 1 << 20;
  if (!read_number(numbers[0], 0, kMostRanks, part.first_rank) ||
      !read_number(numbers[1], 1, kMostRanks, part.size) ||
      !read_number(numbers[2], 1, 65535, port) || host.empty()) {
    throw std::invalid_argument(fmt::format(
        "--agent: '{}' is not FIRST,SIZE,PORT,HOST, as kolo-run passes it to its agents", text));
  }
  part.store = "tcp://" + posix::host_and_port(host, static_cast<std::uint16_t>(port));
  return part;
}

}  // namespace kolo::inline v0::launch
