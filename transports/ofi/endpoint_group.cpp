#include "transports/ofi/endpoint_group.h"

#include <sys/mman.h>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

namespace kolo::inline v0::ofi {

namespace {

// One object per process, as the provider's list of regions is. Endpoints still resting at the end
// of the process are not closed.
struct Resting {
  std::mutex mutex;
  std::map<std::string, std::vector<Fids>> households;
  std::vector<Fids> strays;
};

Resting& resting() {
  static Resting* const all = std::make_unique<Resting>().release();
  return *all;
}

// Called while all regions are mapped, so that no close reads an unmapped region.
void forget_addresses(Fids& fids) noexcept {
  if (!fids.addresses || fids.peers.empty()) return;
  ::fi_av_remove(fids.addresses.get(), fids.peers.data(), fids.peers.size(), 0);
}

}  // namespace

void close_together(const EndpointGroup& household, Fids fids) {
  std::vector<Fids> complete;
  {
    const std::lock_guard lock(resting().mutex);
    auto& those = resting().households[household.name];
    those.push_back(std::move(fids));
    if (those.size() < household.members) return;
    complete = std::move(those);
    resting().households.erase(household.name);
  }
  for (Fids& each : complete) forget_addresses(each);
  for (Fids& each : complete) each.close();
}

void keep_open(Fids fids) {
  const std::lock_guard lock(resting().mutex);
  resting().strays.push_back(std::move(fids));
}

void unlink_region(const std::string& name) noexcept {
  const auto scheme = name.find("://");
  const std::string file = name.substr(scheme == std::string::npos ? 0 : scheme + 3);
  ::shm_unlink(file.c_str());
}

}  // namespace kolo::inline v0::ofi
