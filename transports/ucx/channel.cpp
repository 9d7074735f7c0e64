#include "transports/ucx/channel.h"

#include <fmt/format.h>
#include <algorithm>

#include "transports/base/check.h"
#include "transports/error.h"
#include "transports/ucx/endpoint_transports.h"
#include "transports/ucx/reserved_descriptors.h"

namespace kolo::inline v0::ucx {

namespace {

// Descriptors that UCX opens briefly while it connects, and that the process may open meanwhile.
constexpr int kDescriptorsForAMoment = 5;

}  // namespace

UcxChannel::UcxChannel(SharedState& station, int peer, std::size_t longest_bytes,
                       std::size_t preferred_bytes)
    : shared_(station),
      peer_(peer),
      outbox_(station.worker, station.addresses[static_cast<std::size_t>(station.rank)].token,
              station.rank, longest_bytes),
      inbox_(station.worker, station.liveness, peer, longest_bytes) {
  capabilities_.segment_bytes = longest_bytes;
  capabilities_.preferred_segment_bytes = preferred_bytes;
  capabilities_.shortest_segment_bytes = std::min<std::size_t>(preferred_bytes, 64 * 1024);
  capabilities_.credit_segments = static_cast<int>(kWindow);
  // If shorter segments are preferred, UCX copies them into its queues, from a slot or from the
  // caller's memory.
  if (preferred_bytes < longest_bytes) capabilities_.zero_copy_bytes = 1;
  capabilities_.latency_us = 3;
  capabilities_.bandwidth_GBps = 4;
}

// --- the connection ---

void UcxChannel::connect() {
  if (outbox_.is_connected() || !lost_.empty()) return;
  std::optional<ReservedDescriptors> promised;
  try {
    if (!shared_.is_meeting) promised.emplace(kDescriptorsPerPeer + kDescriptorsForAMoment, 0);
  } catch (const Error& error) {
    throw Error(error.code(), peer_,
                fmt::format("rank {}: cannot connect to rank {} (ucx): {}", shared_.rank, peer_,
                            error.what()));
  }
  connect_now();
}

void UcxChannel::connect_now() {
  const EndpointAddress& theirs = shared_.addresses[static_cast<std::size_t>(peer_)];
  const EndpointAddress& own = shared_.addresses[static_cast<std::size_t>(shared_.rank)];
  const bool is_on_this_host = theirs.identity == own.identity;
  if (is_on_this_host) watch();
  if (!lost_.empty()) return;
  try {
    outbox_.connect(shared_.worker.connect(
        theirs.address,
        is_on_this_host ? Worker::Failures::kAreSeenByOthers : Worker::Failures::kAreToldByUcx,
        [](void* channel, ucp_ep_h, ucs_status_t status) {
          static_cast<UcxChannel*>(channel)->note_failure(status);
        },
        this));
  } catch (const Error& error) {
    throw Error(error.code(), peer_,
                fmt::format("rank {}: ucx cannot reach rank {} ({}): set UCX_TLS and "
                            "UCX_NET_DEVICES alike on all ranks, with a transport for both",
                            shared_.rank, peer_, error.what()));
  }
  statistics_.connections = 1;
  outbox_.send_note(Kind::kHello, 0);
  flush();
}

void UcxChannel::flush() {
  ucp_request_param_t param{};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  param.cb.send = [](void* request, ucs_status_t, void* channel) {
    auto& self = *static_cast<UcxChannel*>(channel);
    --self.flushes_;
    self.is_flushed_ = true;
    self.shared_.worker.note_news();
    self.shared_.worker.ucp().request_free(request);
  };
  param.user_data = this;
  ++flushes_;
  void* const request = shared_.worker.ucp().ep_flush_nbx(outbox_.endpoint(), &param);
  if (UCS_PTR_IS_PTR(request)) return;
  --flushes_;
  is_flushed_ = true;
}

void UcxChannel::say_goodbye() {
  if (!is_settled() || !may_part()) return;
  outbox_.send_note(Kind::kGoodbye, inbox_.released());
  flush();
}

void UcxChannel::watch() {
  const EndpointAddress& own = shared_.addresses[static_cast<std::size_t>(shared_.rank)];
  const EndpointAddress& theirs = shared_.addresses[static_cast<std::size_t>(peer_)];
  try {
    wants_liveness_ = !shared_.liveness.watch(
        peer_, theirs.liveness, {own.token, static_cast<std::uint32_t>(shared_.rank), 0, 0});
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kPeerLost) throw;
    wants_liveness_ = false;
    shared_.read_what_is_there();
    if (!last_) lose("it has ended, or closed its transport");
  }
}

ucs_status_t UcxChannel::accept(Kind kind, const ReadHeader& read, void* data, std::size_t bytes,
                                std::uint64_t attributes) noexcept {
  const Header& header = read.header;
  // Ignores a lost peer, and messages of a restarted one.
  if (header.token != shared_.addresses[static_cast<std::size_t>(peer_)].token || !lost_.empty())
    return UCS_OK;
  outbox_.give_credit(header.released);
  if (kind == Kind::kSegment) {
    if (!read.before.empty())
      inbox_.accept(header.number - 1, read.before.data(), read.before.size(), 0);
    return inbox_.accept(header.number, data, bytes, attributes);
  }
  if (kind == Kind::kReady) is_peer_ready_ = true;
  if (kind == Kind::kGoodbye) part(header.number, header.released);
  return UCS_OK;
}

void UcxChannel::part(std::uint32_t sent, std::uint32_t taken) noexcept {
  last_ = sent;
  inbox_.believe(sent);
  outbox_.give_credit(taken);
}

void UcxChannel::hear(const Farewell& farewell) noexcept {
  if (farewell.token == shared_.addresses[static_cast<std::size_t>(peer_)].token)
    part(farewell.sent, farewell.taken);
}

void UcxChannel::end() {
  // Read all that the peer had sent before it ended. (In UCX's shared memory it may be behind an
  // incomplete message of another rank: from a peer that ended in order, all segments are awaited.)
  shared_.read_what_is_there();
  if (!lost_.empty() || (last_ && (broken_ == UCS_OK || inbox_.has_all(*last_)))) return;
  lose(broken_ == UCS_OK ? "it has ended, or closed its transport"
                         : "UCX says '" + text_of(shared_.worker.ucp(), broken_) + "'" + way_out());
}

// UCX reports a refusal by the kernel only as an I/O error or a timeout.
std::string UcxChannel::way_out() const {
  const auto names = carriers();
  const bool may_be_refused = broken_ == UCS_ERR_IO_ERROR || broken_ == UCS_ERR_ENDPOINT_TIMEOUT;
  if (!may_be_refused || std::find(names.begin(), names.end(), "cma") == names.end()) return {};
  return " (if the kernel refuses copies between processes, process_vm_readv, leave cma out of "
         "UCX_TLS)";
}

void UcxChannel::lose(const std::string& why) {
  lost_ = fmt::format("rank {} (ucx): {}; look at its last output", peer_, why);
}

void UcxChannel::throw_if_closed() const {
  if (!is_closed_) return;
  throw Error(ErrorCode::kAborted, kNoPeer,
              fmt::format("rank {}: this transport was closed", shared_.rank));
}

void UcxChannel::throw_lost(const char* operation) const {
  if (broken_ == UCS_ERR_NO_MEMORY) {  // of this rank: its peer may be in good health
    throw Error(ErrorCode::kSystem, kNoPeer,
                fmt::format("rank {}: there is no memory to {} rank {} (ucx): see ulimit -v, and "
                            "the limit of the control group",
                            shared_.rank, operation, peer_));
  }
  throw Error(
      ErrorCode::kPeerLost, peer_,
      fmt::format("rank {}: cannot {} {}", shared_.rank, operation,
                  lost_.empty() ? fmt::format("rank {} (ucx): it closed its transport; look "
                                              "at its last output",
                                              peer_)
                                : lost_));
}

void UcxChannel::throw_if_lost() const {
  if (is_over()) throw_lost("reach");
}

// --- sending ---

void UcxChannel::throw_if_cannot_send() {
  throw_if_closed();
  if (outbox_.failure() != UCS_OK && lost_.empty()) {
    broken_ = outbox_.failure();
    end();
  }
  if (is_over()) throw_lost("send to");
}

void UcxChannel::wait_for_place() {
  send_held();
  shared_.worker.bring([this] { return outbox_.has_place(); });
}

std::byte* UcxChannel::reserve(std::size_t bytes) {
  throw_if_cannot_send();
  check(bytes <= capabilities_.segment_bytes,
        "a segment is longer than Capabilities::segment_bytes");
  check(!is_reserved_, "reserve() before the slot reserved last was committed");
  if (!outbox_.has_place()) wait_for_place();
  if (!outbox_.has_place()) return nullptr;
  is_reserved_ = true;
  reserved_bytes_ = bytes;
  return outbox_.slot();
}

void UcxChannel::commit(unsigned flags) {
  throw_if_closed();
  check(is_reserved_, "commit() without a reserved slot");
  is_reserved_ = false;
  throw_if_cannot_send();
  enqueue({outbox_.slot(), reserved_bytes_}, flags);
}

bool UcxChannel::send(std::span<const std::byte> data, unsigned flags) {
  throw_if_cannot_send();
  check(data.size() <= capabilities_.segment_bytes,
        "a segment is longer than Capabilities::segment_bytes");
  check(!is_reserved_, "send() while a slot is reserved");
  if (!outbox_.has_place()) wait_for_place();
  if (!outbox_.has_place()) return false;
  enqueue(data, flags);
  return true;
}

void UcxChannel::enqueue(std::span<const std::byte> data, unsigned flags) {
  check((flags & kAnswered) == 0,
        "this channel takes no answers: ask Capabilities::can_answer first");
  connect();
  throw_if_cannot_send();
  if (!knows_carriers_ && is_settled()) learn_carriers();
  statistics_.bytes_sent += data.size();
  ++statistics_.segments_sent;
  const bool may_wait = (flags & kMore) != 0 && !data.empty() && data.size() <= kMostBefore &&
                        outbox_.has_room_behind();
  if (outbox_.is_holding() && may_wait) send_held();
  if (may_wait) {
    outbox_.hold(data);
    ++shared_.holding;
    return;
  }
  if (outbox_.is_holding()) --shared_.holding;
  told_ = inbox_.released();
  outbox_.send_segment(data, told_);
}

void UcxChannel::learn_carriers() {
  knows_carriers_ = true;
  const auto names = carriers();
  may_keep_sent_ = keep_sent(names);
  if (!shared_.asks_as_told) outbox_.send_eagerly(eager_bytes(names));
}

std::vector<std::string> UcxChannel::carriers() const {
  if (outbox_.endpoint() == nullptr) return {};
  return transports_in(shared_.worker.describe(outbox_.endpoint()));
}

void UcxChannel::send_held() {
  if (!outbox_.is_holding()) return;
  --shared_.holding;
  if (is_over()) return outbox_.drop_held();
  told_ = inbox_.released();
  outbox_.send_held(told_);
}

bool UcxChannel::is_drained() {
  throw_if_closed();
  send_held();
  if (!outbox_.is_drained()) shared_.worker.bring([this] { return outbox_.is_drained(); });
  if (outbox_.is_drained() && outbox_.failure() == UCS_OK && (!may_keep_sent_ || has_all_left()))
    return true;
  // UCX may not know yet what the peer reported when it ended.
  if (!(last_ && outbox_.is_all_taken())) throw_if_cannot_send();
  return false;
}

// Skips the check for data that the peer has taken or will not take any more. If the sockets are
// not full, the check costs a look at a counter of UCX and sends nothing.
bool UcxChannel::has_all_left() {
  if (outbox_.has_all_left() || outbox_.is_all_taken()) return true;
  if (shared_.worker.has_all_left()) {
    outbox_.believe_all_left();
    return true;
  }
  if (is_over() || is_broken() || !shared_.liveness.is_alive(peer_)) return true;
  told_ = inbox_.released();
  outbox_.send_probe(told_);
  return outbox_.has_all_left();
}

// --- receiving ---

const std::byte* UcxChannel::view(std::size_t bytes) {
  throw_if_closed();
  check(bytes <= capabilities_.segment_bytes,
        "a segment is longer than Capabilities::segment_bytes");
  if (is_viewing_) return inbox_.data();
  auto taken = inbox_.view(bytes);
  if (taken == Inbox::Taken::kNotYet) {
    connect();
    send_held();
    shared_.worker.bring([&] { return inbox_.has_next(); });
    taken = inbox_.view(bytes);
  }
  if (!settle(taken)) return nullptr;
  is_viewing_ = true;
  viewed_bytes_ = bytes;
  return inbox_.data();
}

void UcxChannel::release() {
  throw_if_closed();
  check(is_viewing_, "release() without a view");
  is_viewing_ = false;
  inbox_.release();
  finish_segment(viewed_bytes_);
}

bool UcxChannel::receive(std::span<std::byte> into, unsigned /*flags*/) {
  throw_if_closed();
  check(into.size() <= capabilities_.segment_bytes,
        "a segment is longer than Capabilities::segment_bytes");
  check(!is_viewing_, "receive() before the view was released");
  auto taken = inbox_.receive(into);
  if (taken == Inbox::Taken::kNotYet) {
    connect();
    send_held();
    shared_.worker.bring([&] { return inbox_.has_next(); });
    taken = inbox_.receive(into);
  }
  if (!settle(taken)) return false;
  finish_segment(into.size());
  return true;
}

// True if the segment is there. Throws if it can never arrive.
bool UcxChannel::settle(Inbox::Taken taken) {
  if (taken == Inbox::Taken::kYes) return true;
  if (taken == Inbox::Taken::kNotYet && lost_.empty() && !is_at_end() && !inbox_.is_faulty())
    return false;
  inbox_.forget_place();
  if (inbox_.is_faulty()) {
    throw Error(ErrorCode::kProtocol, peer_,
                fmt::format("rank {}: rank {} (ucx) sent a segment that is too long or out of "
                            "order: run the same build of kolo on every rank",
                            shared_.rank, peer_));
  }
  if (taken == Inbox::Taken::kFailed && lost_.empty()) {
    broken_ = inbox_.failure();
    end();
  }
  throw_lost("receive from");
}

void UcxChannel::finish_segment(std::size_t bytes) {
  statistics_.bytes_received += bytes;
  ++statistics_.segments_received;
  const std::uint32_t released = inbox_.released();
  if (distance(told_, released) < kTellAfter || is_over() || !outbox_.is_connected()) return;
  // A message to a peer that has ended makes UCX drop the connection, with its unread data.
  if (!shared_.liveness.is_alive(peer_)) return;
  told_ = released;
  outbox_.send_note(Kind::kCredit, released);
}

}  // namespace kolo::inline v0::ucx
