#include "transports/ucx/buffer_sizes.h"

#include <algorithm>

#include "transports/settings.h"
#include "transports/ucx/endpoint_transports.h"
#include "transports/ucx/message_header.h"

namespace kolo::inline v0::ucx {

namespace {

// Room for UCX's headers and for this transport's.
constexpr std::size_t kRoomForHeaders = 256;
static_assert(kHeaderBytes + kMostBefore <= kRoomForHeaders / 2);

// Number of buffers that UCX adds at once in shared memory, 1.3 MiB for each rank. UCX's default is
// 512, too many for a container with 64 MB of /dev/shm. Its queue takes the first 65; the rest is
// for segments that are viewed in place.
constexpr const char* kGrowth = "80";

struct Setting {
  std::string name;
  std::string value;
  bool is_for_queues;  // false: for tcp
  std::vector<const char*> of_user;
};

// Before 1.17, UCX expects the setting of a transport without the transport's name as a prefix.
std::string name_of(const Library& ucp, const char* transport, const char* name) {
  unsigned major = 0;
  unsigned minor = 0;
  unsigned release = 0;
  ucp.get_version(&major, &minor, &release);
  return major == 1 && minor < 17 ? name : std::string(transport) + name;
}

// For tcp only the receive side is set. Data that fit into a send buffer are copied there and count
// as sent before the socket has taken them; longer data are sent from the caller's memory.
std::vector<Setting> settings_for(const Library& ucp) {
  const std::string queued = std::to_string(kQueueBufferBytes + kRoomForHeaders);
  const std::string tcp = std::to_string(kTcpBufferBytes + kRoomForHeaders);
  return {
      {"MM_SEG_SIZE", queued, true, {"UCX_MM_SEG_SIZE", "UCX_POSIX_SEG_SIZE", "UCX_SYSV_SEG_SIZE"}},
      {"MM_RX_BUFS_GROW",
       kGrowth,
       true,
       {"UCX_MM_RX_BUFS_GROW", "UCX_POSIX_RX_BUFS_GROW", "UCX_SYSV_RX_BUFS_GROW"}},
      {name_of(ucp, "TCP_", "RX_SEG_SIZE"), tcp, false, {"UCX_TCP_RX_SEG_SIZE"}}};
}

}  // namespace

// UCX warns of unused settings, so nothing is set for transports that are not there.
bool set_buffer_sizes(const Library& ucp, ucp_config_t* config,
                      const std::vector<std::string>& resources) {
  const bool queues = has_queues(resources);
  const bool tcp = std::find(resources.begin(), resources.end(), "tcp") != resources.end();
  if (!queues && !tcp) return false;
  bool is_any = false;
  for (const Setting& setting : settings_for(ucp)) {
    if (!(setting.is_for_queues ? queues : tcp)) continue;
    if (std::any_of(setting.of_user.begin(), setting.of_user.end(), is_in_environment)) continue;
    is_any |= ucp.config_modify(config, setting.name.c_str(), setting.value.c_str()) == UCS_OK;
  }
  return is_any;
}

}  // namespace kolo::inline v0::ucx
