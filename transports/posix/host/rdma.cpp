#include "transports/posix/host/rdma.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "transports/posix/host/cgroup.h"

namespace kolo::inline v0::posix {

namespace {

namespace fs = std::filesystem;

// Entries of a folder; none if it cannot be read.
std::vector<fs::path> entries_of(const fs::path& folder) {
  std::error_code error;
  std::vector<fs::path> entries;
  for (fs::directory_iterator each(folder, error), end; !error && each != end;
       each.increment(error))
    entries.push_back(each->path());
  return entries;
}

std::string line_of(const fs::path& file) { return first_line(file.string()).value_or(""); }

// Names of the adapters whose device files this process may open. A container may list hardware
// that its processes cannot use.
std::set<std::string> usable_adapters(const RdmaPlaces& places) {
  std::set<std::string> names;
  for (const auto& verbs : entries_of(places.classes + "/infiniband_verbs")) {
    const fs::path file = fs::path(places.devices) / verbs.filename();
    const std::string name = line_of(verbs / "ibdev");
    if (!name.empty() && ::access(file.c_str(), R_OK | W_OK) == 0) names.insert(name);
  }
  return names;
}

// True for node type 1, "channel adapter", of InfiniBand and RoCE. rxe has this type as well, but
// its `parent` is a network interface.
bool is_hardware(const fs::path& adapter) {
  std::error_code none;
  return line_of(adapter / "node_type").starts_with("1:") && !fs::exists(adapter / "parent", none);
}

}  // namespace

std::vector<std::string> rdma_links(const RdmaPlaces& places) {
  std::set<std::string> links;
  const auto usable = usable_adapters(places);
  for (const auto& adapter : entries_of(places.classes + "/infiniband")) {
    if (!usable.contains(adapter.filename().string()) || !is_hardware(adapter)) continue;
    for (const auto& port : entries_of(adapter / "ports")) {
      const std::string link = line_of(port / "link_layer");
      const bool is_known = std::ranges::find(kRdmaLinks, link) != std::end(kRdmaLinks);
      if (is_known && line_of(port / "state") == "4: ACTIVE") links.insert(link);
    }
  }
  return {links.begin(), links.end()};
}

}  // namespace kolo::inline v0::posix
