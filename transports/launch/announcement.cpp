#include "transports/launch/announcement.h"

#include <fmt/format.h>

#include <charconv>
#include <chrono>
#include <fstream>
#include <functional>
#include <random>
#include <thread>
#include <vector>

#include "transports/launch/pmi.h"
#include "transports/launch/pmix.h"
#include "transports/posix/host/addresses.h"
#include "transports/posix/whole_file.h"

namespace kolo::inline v0::launch {
namespace {

using namespace std::chrono_literals;

// The same for all ranks of a job on this host. Another job may have had the same folder before.
std::string file_of(const Launcher& launcher) {
  return fmt::format("{}/kolo-store-{:016x}", launcher.folder,
                     std::hash<std::string>{}(launcher.job));
}

std::string announce_in_file(const std::string& path, int rank, const std::string& text,
                             Deadline deadline) {
  if (rank == 0) {
    posix::write_whole(path, text + '\n');
    return text;
  }
  const auto start = Clock::now();
  while (true) {
    std::string line;
    std::ifstream file(path);
    if (std::getline(file, line)) return line;
    if (Clock::now() >= deadline) break;
    std::this_thread::sleep_for(1ms);
  }
  const std::chrono::duration<double> waited = Clock::now() - start;
  throw Error(ErrorCode::kDeadline, 0,
              fmt::format("waited {:.1f} s for rank 0 to announce the store in {}: is it late or "
                          "gone?",
                          waited.count(), path));
}

}  // namespace

StorePlaces places_of_this_host(std::uint16_t port, bool is_one_host) {
  StorePlaces at;
  if (!is_one_host) {
    for (const std::string& host : posix::addresses_for_peers({}, true))
      at.places.push_back({host, port});
  }
  if (at.places.empty()) at.places = {{"127.0.0.1", port}, {"::1", port}};
  return at;
}

std::string random_name() {
  std::random_device source;
  return fmt::format("{:08x}{:08x}", source(), source());
}

std::string to_text(const StorePlaces& at) {
  std::string text = fmt::format("{},{}", at.job, at.places.front().port);
  for (const auto& place : at.places) text += "," + place.host;
  return text;
}

StorePlaces parse_places(std::string_view text) {
  std::vector<std::string> words{""};
  for (const char c : text) {
    if (c == ',') {
      words.emplace_back();
    } else {
      words.back() += c;
    }
  }
  std::uint16_t port = 0;
  if (words.size() >= 3) std::from_chars(words[1].data(), words[1].data() + words[1].size(), port);
  if (port == 0) {
    throw Error(ErrorCode::kProtocol, 0,
                fmt::format("rank 0 announced '{}' through the launcher, which is not a place of a "
                            "store: run the same build of kolo everywhere",
                            text));
  }
  StorePlaces at{{}, words[0]};
  for (std::size_t i = 2; i < words.size(); ++i) at.places.push_back({words[i], port});
  return at;
}

Announce announcement(const Settings& settings) {
  const Launcher& launcher = settings.launcher;
  const int rank = settings.rank.value_or(0);
  if (launcher.kind == Launcher::Kind::kMpich && launcher.pmi_descriptor >= 0) {
    return
        [descriptor = launcher.pmi_descriptor, rank](const std::string& text, Deadline deadline) {
          return announce_by_pmi(descriptor, rank, text, deadline);
        };
  }
  if (launcher.kind != Launcher::Kind::kOpenMpi) return {};
  const bool is_one_host = settings.local_size == settings.size;
  if (is_one_host && !launcher.folder.empty()) {
    return [path = file_of(launcher), rank](const std::string& text, Deadline deadline) {
      return announce_in_file(path, rank, text, deadline);
    };
  }
  return [prefix = launcher.pmix_prefix, rank](const std::string& text, Deadline deadline) {
    return announce_by_pmix(prefix, rank, text, deadline);
  };
}

}  // namespace kolo::inline v0::launch
