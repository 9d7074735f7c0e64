#include "train/report/manifest.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <nlohmann/json.hpp>
#include <vector>

#include "train/experiment/option_consistency.h"
#include "train/report/machine_info.h"

namespace kolo::train {

std::string manifest_json(const Options& options, const std::string& command) {
  nlohmann::json json;
  json["format"] = "kolo-manifest-1";
  if (!command.empty()) json["command"] = command;
  for (const auto& [name, value] : flags_of(options)) json["flags"][name] = value;
  std::vector<std::string> arms;
  for (const Arm& arm : options.arms) arms.push_back(arm.name());
  json["flags"]["--strategies"] = fmt::format("{}", fmt::join(arms, ","));
  json["flags"]["--dataset"] = options.dataset;
  json["flags"]["--transport"] = options.transport;
  json["flags"]["--shape"] = options.shape;
  json["flags"]["--threads"] = fmt::format("{}", options.threads);
  json["seed"] = options.seed;
  json["machine"] = machine_info();
  std::array<char, 256> host{};
  if (gethostname(host.data(), host.size() - 1) == 0) json["host"] = host.data();
  return json.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace kolo::train
