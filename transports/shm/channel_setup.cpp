// Part of ShmChannel: the two shared regions and the sockets, from the first use to the end.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "transports/error.h"
#include "transports/shm/channel.h"

namespace kolo::inline v0::shm {

namespace {

Capabilities capabilities_of(const Layout& layout) {
  Capabilities capabilities;
  capabilities.segment_bytes = layout.segment_bytes();
  capabilities.preferred_segment_bytes = layout.segment_bytes();
  capabilities.credit_segments = layout.slots();
  capabilities.latency_us = 0.2;
  capabilities.bandwidth_GBps = 8;
  capabilities.can_answer = true;
  return capabilities;
}

template <typename T>
T* at(const posix::SharedMemory& region, std::size_t offset) {
  return reinterpret_cast<T*>(region.bytes().data() + offset);
}

Header header_for(const Layout& layout, int owner, int other) {
  Header header;
  header.ranks[0] = owner;
  header.ranks[1] = other;
  header.slots = static_cast<std::uint32_t>(layout.slots());
  header.segment_bytes = layout.segment_bytes();
  return header;
}

}  // namespace

ShmChannel::ShmChannel(Pair pair, Connector& connector, std::vector<ShmChannel*>& holding,
                       Regions& regions, std::size_t single_copy_bytes)
    : pair_(std::move(pair)),
      side_(pair_.rank < pair_.peer ? 0 : 1),
      connector_(connector),
      capabilities_(capabilities_of(pair_.layout)),
      holding_(holding),
      regions_(regions),
      single_copy_bytes_(single_copy_bytes),
      peer_memory_(pair_.process),
      theirs_(&connector.nobody().control),
      frames_in_(&connector.nobody().frame) {
  if (single_copy_bytes_ != 0 && peer_memory_.can_read(pair_.trial))
    capabilities_.zero_copy_bytes = single_copy_bytes_;
}

ShmChannel::~ShmChannel() { close(); }

// --- connecting ---

// Makes this side's region and starts to connect, on first use. False if this call did so. If no
// descriptor is left, it throws and undoes the start.
bool ShmChannel::is_begun() {
  if (has_region()) return true;
  share();
  try {
    connector_.connect(*this, true);
  } catch (const Error&) {
    if (!has_socket()) unshare();
    throw;
  }
  check_alive();
  return false;
}

int ShmChannel::share() {
  if (has_region()) return mine_region_.descriptor();
  const Layout& layout = pair_.layout;
  try {
    mine_region_ = posix::SharedMemory(layout.bytes());
  } catch (const Error& error) {
    throw Error(ErrorCode::kUnavailable, pair_.peer,
                fmt::format("rank {}: cannot make memory to share with {}: {}; descriptors "
                            "(ulimit -n) or memory may be short",
                            pair_.rank, pair_.peer_name, error.what()));
  }
  new (mine_region_.bytes().data()) Header(header_for(layout, pair_.rank, pair_.peer));
  mine_ = at<Control>(mine_region_, layout.control_offset());
  frames_out_ = at<Frame>(mine_region_, layout.frames_offset());
  if (peer_memory_.is_readable()) mine_->reads.store(1, std::memory_order_release);
  for (int slot = layout.slots() - 1; slot >= 0; --slot) {
    const int number = side_ * layout.slots() + slot;
    slots_[static_cast<std::size_t>(number)] =
        at<std::byte>(mine_region_, layout.slot_offset(number));
    free_slots_[free_count_++] = static_cast<std::uint8_t>(number);
    own_slot(static_cast<unsigned>(number));
  }
  return mine_region_.descriptor();
}

void ShmChannel::unshare() noexcept {
  mine_region_ = {};
  mine_ = nullptr;
  frames_out_ = nullptr;
  free_count_ = 0;
  owned_ = 0;
}

bool ShmChannel::attach(posix::Descriptor region, int process) {
  const Layout& layout = pair_.layout;
  posix::SharedMemory memory;
  try {
    memory = posix::SharedMemory(std::move(region), layout.bytes());
  } catch (const Error& error) {
    kill(error.code(), fmt::format("rank {}: {} has passed memory that this rank cannot map: "
                                   "{}",
                                   pair_.rank, pair_.peer_name, error.what()));
    return false;
  }
  memory.forget_descriptor();
  Header header;
  std::memcpy(&header, memory.bytes().data(), sizeof header);
  if (!(header == header_for(layout, pair_.peer, pair_.rank))) {
    kill(ErrorCode::kProtocol,
         fmt::format("rank {}: {} uses a different layout of the shared memory: run the same "
                     "build of kolo",
                     pair_.rank, pair_.peer_name));
    return false;
  }
  theirs_region_ = std::move(memory);
  is_joined_ = true;
  theirs_ = at<Control>(theirs_region_, layout.control_offset());
  frames_in_ = at<Frame>(theirs_region_, layout.frames_offset());
  for (int slot = 0; slot < layout.slots(); ++slot) {
    const int number = (1 - side_) * layout.slots() + slot;
    slots_[static_cast<std::size_t>(number)] =
        at<std::byte>(theirs_region_, layout.slot_offset(number));
  }
  // In another pid namespace, the pid that the peer published is not its pid here.
  if (single_copy_bytes_ != 0 && !peer_memory_.is_readable() && process != pair_.process) {
    peer_memory_ = PeerMemory(process);
    if (peer_memory_.can_read(pair_.trial)) {
      capabilities_.zero_copy_bytes = single_copy_bytes_;
      if (has_region()) mine_->reads.store(1, std::memory_order_release);
    }
  }
  if (published_ > 0) wake(kData);
  return true;
}

// --- the sockets ---

void ShmChannel::add_socket(posix::Descriptor socket) {
  (sockets_[0].is_open() ? sockets_[1] : sockets_[0]) = std::move(socket);
  count_connections();
}

posix::Message ShmChannel::hear_first(std::span<std::byte> into) {
  auto heard = posix::receive_message(sockets_[0].get(), into);
  if (heard.what == posix::Received::kClosed) sockets_[0].close();
  count_connections();
  return heard;
}

// If both ranks have opened a socket, the peer sends nothing on this rank's. That socket can end
// for two reasons. If the peer closed in order, its own socket may still hold messages. Otherwise
// the peer dropped the connection for lack of descriptors, and will never get this side's region.
bool ShmChannel::has_lost_own_socket() {
  if (!sockets_[1].is_open()) return false;
  std::byte nothing{};
  const auto heard = posix::receive_message(sockets_[0].get(), {&nothing, 1});
  if (heard.what != posix::Received::kClosed) return false;
  sockets_[0] = std::move(sockets_[1]);
  return theirs_->closed.load(std::memory_order_acquire) == 0;
}

void ShmChannel::count_connections() {
  statistics_.connections = static_cast<std::uint64_t>(std::count_if(
      sockets_.begin(), sockets_.end(), [](const auto& socket) { return socket.is_open(); }));
}

std::string ShmChannel::why_unconnected() const {
  if (is_attached()) return "";
  std::string why = connector_.why_kept_out();
  if (!why.empty() || !has_socket()) return why;
  return fmt::format("{} has not answered the hello over shm yet", pair_.peer_name);
}

// --- closing ---

// Closes the sockets last, as their end tells the peer.
void ShmChannel::close() noexcept {
  if (std::exchange(is_closed_, true)) return;
  if (has_region()) {
    try {
      if (failure_.empty()) flush();
    } catch (const std::exception&) {  // no descriptor or no memory is left to connect
    }
    // Must come before any other use of offered memory: the peer checks this after reading it. Both
    // are read-modify-writes. On weakly ordered processors, such as aarch64, later writes may pass
    // a store; here they come after the peer's check, or the check sees the 1.
    mine_->closed.exchange(1, std::memory_order_seq_cst);
  }
  take_back_lent();
  held_ = {};
  last_offer_ = UINT64_MAX;  // so that is_drained() checks whether this channel is alive
  for (auto& socket : sockets_) socket.close();
  count_connections();
  try {
    kill(ErrorCode::kAborted,
         "rank " + std::to_string(pair_.rank) + ": this shm transport was closed");
  } catch (const std::bad_alloc&) {
    kill(ErrorCode::kAborted, "shm was closed");  // short enough to need no allocation
  }
}

void ShmChannel::lose_peer() {
  const std::string who = "rank " + std::to_string(pair_.rank) + ": " + pair_.peer_name;
  if (theirs_->closed.load(std::memory_order_acquire) != 0) {
    has_ended_ = true;
    is_joined_ = false;
    end_text_ = who +
                " has closed its shm channel and sends and receives no more: it ended early, or "
                "ran another program";
    return;
  }
  kill(ErrorCode::kPeerLost,
       who + " is gone: its shm socket closed without a goodbye; its own output may say why");
  fail();
}

void ShmChannel::kill(ErrorCode code, std::string why) {
  if (!failure_.empty()) return;
  failure_code_ = code;
  failure_ = std::move(why);
}

}  // namespace kolo::inline v0::shm
