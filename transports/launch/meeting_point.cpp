#include "transports/launch/meeting_point.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "transports/posix/host/addresses.h"
#include "transports/posix/host/identity.h"

namespace kolo::inline v0::launch {
namespace {

constexpr int kPorts = 8;
// Below the ports that Linux gives to clients by default, 32768 to 60999.
constexpr std::uint32_t kLowPort = 20'000;
constexpr std::uint32_t kHighPort = 32'000;
constexpr std::uint16_t kPortOfPods = 29'500;  // a pod has all ports for itself

// FNV-1a, which is the same on every host.
std::uint32_t hash(std::string_view text) {
  std::uint32_t value = 2'166'136'261U;
  for (const char c : text) value = (value ^ static_cast<unsigned char>(c)) * 16'777'619U;
  return value;
}

// kPorts ports from `first` on. Past the largest port they continue above the privileged ones.
StorePlaces places_at(const std::string& host, std::uint32_t first, std::string job) {
  StorePlaces at{{}, std::move(job)};
  for (std::uint32_t i = 0; i < kPorts; ++i) {
    const std::uint32_t port = first + i;
    at.places.push_back({host, static_cast<std::uint16_t>(port < 65'536 ? port : port - 64'512)});
  }
  return at;
}

StorePlaces of_slurm(const Launcher& launcher) {
  const std::string host =
      launcher.nodes == 1 ? posix::loopback_host() : first_host(launcher.node_list);
  const std::uint32_t port = kLowPort + hash(launcher.job) % (kHighPort - kLowPort);
  return places_at(host, port, "srun " + launcher.job);
}

std::optional<StorePlaces> of_kubernetes(int rank) {
  const std::string host = first_pod(posix::full_host_name(), rank);
  if (host.empty()) return std::nullopt;
  return StorePlaces{{{host, kPortOfPods}}, "pods of " + host.substr(0, host.find('.'))};
}

}  // namespace

std::string first_host(std::string_view list) {
  std::string host;
  while (!list.empty() && list.front() != ',') {
    const char c = list.front();
    list.remove_prefix(1);
    if (c != '[') {
      host += c;
      continue;
    }
    host += list.substr(0, std::min(list.find_first_of(",-]"), list.size()));
    list.remove_prefix(std::min(list.find(']'), list.size() - 1) + 1);
  }
  return host;
}

std::string first_pod(std::string_view name, int index) {
  const std::string ending = fmt::format("-{}", index);
  const auto dot = std::min(name.find('.'), name.size());
  const std::string_view pod = name.substr(0, dot);
  if (!pod.ends_with(ending)) return {};
  return fmt::format("{}-0{}", pod.substr(0, pod.size() - ending.size()), name.substr(dot));
}

std::optional<StorePlaces> meeting_point(const Settings& settings) {
  const Launcher& launcher = settings.launcher;
  switch (launcher.kind) {
    case Launcher::Kind::kTorchrun:
      return places_at(settings.master_host, settings.master_port + 1U, launcher.job);
    case Launcher::Kind::kSlurm:
      if (launcher.node_list.empty() && launcher.nodes != 1) return std::nullopt;
      return of_slurm(launcher);
    case Launcher::Kind::kKubernetes:
      return of_kubernetes(settings.rank.value_or(0));
    default:
      return std::nullopt;
  }
}

}  // namespace kolo::inline v0::launch
