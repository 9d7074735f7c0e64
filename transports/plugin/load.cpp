#include "transports/plugin/load.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <map>
#include <mutex>
#include <stdexcept>
#include <vector>

#include "transports/plugin/registration.h"
#include "transports/posix/library.h"
#include "transports/registry.h"

namespace kolo::inline v0 {

namespace plugin {

namespace {

constexpr std::string_view kBuildAgain =
    "build it again with the transports/plugin.h of this kolo's installation";

[[noreturn]] void refuse(std::string_view origin, const std::string& reason) {
  throw std::invalid_argument(fmt::format("the transport {}: {}", origin, reason));
}

// Names of required functions that the table lacks.
std::vector<std::string_view> missing_functions(const kolo_plugin& table) {
  std::vector<std::string_view> missing;
  const auto need = [&missing](const char* name, bool is_there) {
    if (!is_there) missing.emplace_back(name);
  };
  need("make", table.make != nullptr);
  need("destroy", table.destroy != nullptr);
  need("channel", table.channel != nullptr);
  need("progress", table.progress != nullptr);
  need("quiesce", table.quiesce != nullptr);
  need("send", table.send != nullptr);
  need("receive", table.receive != nullptr);
  need("completed", table.completed != nullptr);
  // These three go together.
  if (table.descriptor != nullptr || table.arm != nullptr || table.disarm != nullptr) {
    need("descriptor", table.descriptor != nullptr);
    need("arm", table.arm != nullptr);
    need("disarm", table.disarm != nullptr);
  }
  return missing;
}

bool is_word(const char* name) {
  if (name == nullptr || *name == '\0' || std::strlen(name) > 64) return false;
  return std::all_of(name, name + std::strlen(name), [](char c) {
    return c > ' ' && c <= '~' && c != '/' && c != '?' && c != ',' && c != '"';
  });
}

struct Registered {
  std::mutex mutex;
  std::map<std::string, Plugin, std::less<>> plugins;
};

// A global, against the house rule; for the reason see register_transport.
Registered& all_registered() {
  static Registered registered;
  return registered;
}

}  // namespace

Plugin checked(const kolo_plugin* table, std::string_view origin) {
  if (table == nullptr) refuse(origin, "its kolo_transport_plugin() returned no table");
  if (table->version != KOLO_PLUGIN_VERSION) {
    refuse(origin, fmt::format("its table is of version {}, and this kolo speaks version {}: {}",
                               table->version, KOLO_PLUGIN_VERSION, kBuildAgain));
  }
  if (table->size < offsetof(kolo_plugin, why_unusable)) {
    refuse(origin,
           fmt::format("its table has a size of {} bytes, less than the required fields: set "
                       "size to sizeof(kolo_plugin)",
                       table->size));
  }
  Plugin plugin;
  plugin.origin = origin;
  std::memcpy(&plugin.table, table, std::min<std::size_t>(table->size, sizeof plugin.table));
  if (!is_word(plugin.table.name))
    refuse(origin, "its name is not one word of 1 to 64 visible characters without / ? and ,");
  if (plugin.table.reach < KOLO_PROCESS || plugin.table.reach > KOLO_NETWORK)
    refuse(origin, fmt::format("its reach is {}: it may be KOLO_PROCESS, KOLO_HOST or KOLO_NETWORK",
                               plugin.table.reach));
  const auto missing = missing_functions(plugin.table);
  if (!missing.empty()) {
    refuse(origin, fmt::format("its table lacks {}: transports/plugin.h says which functions go "
                               "together; {}",
                               fmt::join(missing, ", "), kBuildAgain));
  }
  return plugin;
}

namespace {

bool is_path(std::string_view name) { return name.find('/') != std::string_view::npos; }

Plugin load(const std::string& path) {
  void* symbol = nullptr;
  try {
    symbol = posix::symbol_of_library(path, KOLO_PLUGIN_SYMBOL);
  } catch (const std::invalid_argument& error) {
    refuse(path, fmt::format("it cannot be loaded: {}; give the path of a shared library that was "
                             "built for this machine, with all that it links (ldd -r names what is "
                             "missing)",
                             error.what()));
  }
  if (symbol == nullptr) {
    refuse(path, "the library has no function " KOLO_PLUGIN_SYMBOL
                 ", so it is not a transport for kolo: transports/GUIDE.md (installed in "
                 "share/doc/kolo) says how one "
                 "is written");
  }
  const auto table = reinterpret_cast<decltype(&kolo_transport_plugin)>(symbol);
  return checked(table(), path);
}

std::optional<Plugin> find_registered(std::string_view name) {
  Registered& all = all_registered();
  const std::lock_guard lock(all.mutex);
  const auto found = all.plugins.find(name);
  return found == all.plugins.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace

std::optional<Plugin> find(std::string_view name) {
  const std::string_view place = name.substr(0, name.find('?'));
  auto plugin = is_path(place) ? std::optional(load(std::string(place))) : find_registered(place);
  if (plugin && place.size() < name.size()) plugin->options = name.substr(place.size() + 1);
  return plugin;
}

}  // namespace plugin

bool is_from_outside(std::string_view name) {
  const std::string_view place = name.substr(0, name.find('?'));
  return plugin::is_path(place) || plugin::find_registered(place).has_value();
}

void register_transport(const kolo_plugin& table) {
  using namespace plugin;
  Plugin added = checked(&table, "that is to be registered");
  const std::string name = added.table.name;
  added.origin = fmt::format("{}, registered in this program", name);
  const auto built_in = transport_names();
  if (name == "auto" || std::ranges::find(built_in, name) != built_in.end())
    throw std::invalid_argument(
        fmt::format("a transport of kolo's own is called {}: give yours another name", name));
  Registered& all = all_registered();
  const std::lock_guard lock(all.mutex);
  const auto [place, is_new] = all.plugins.emplace(name, added);
  if (!is_new && std::memcmp(&place->second.table, &added.table, sizeof added.table) != 0)
    throw std::invalid_argument(fmt::format("another transport is registered as {}", name));
}

}  // namespace kolo::inline v0
