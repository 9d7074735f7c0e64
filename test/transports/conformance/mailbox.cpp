// Minimal third-party transport: messages through boxes behind a lock, with an adapter. A box holds
// few messages, and a message's memory is in use until the peer has received it. So the adapter's
// bookkeeping is tested.
#include <algorithm>
#include <deque>
#include <map>
#include <mutex>
#include <vector>

#include "test/transports/conformance/transport_table.h"
#include "transports/base/adapter.h"
#include "transports/error.h"
#include "transports/store/all_gather.h"

namespace kolo::test {

namespace {

constexpr std::size_t kBoxHolds = 3;

struct Box {
  std::deque<std::span<const std::byte>> messages;
  std::uint64_t taken = 0;
};

// State that the ranks share.
struct PostOffice {
  std::mutex mutex;
  std::map<std::pair<int, int>, Box> boxes;
  std::map<int, bool> is_closed;
};

class MailboxChannel final : public PlainChannel {
 public:
  MailboxChannel(PostOffice& office, int rank, int peer)
      : office_(office),
        peer_(peer),
        out_(office.boxes[{rank, peer}]),
        in_(office.boxes[{peer, rank}]) {}

  bool send(std::span<const std::byte> message) override {
    const std::lock_guard lock(office_.mutex);
    fail_if_lost();
    if (out_.messages.size() == kBoxHolds) return false;
    out_.messages.push_back(message);
    return true;
  }

  std::uint64_t completed() override {
    const std::lock_guard lock(office_.mutex);
    if (!out_.messages.empty()) fail_if_lost();
    return out_.taken;
  }

  bool receive(std::span<std::byte> into) override {
    const std::lock_guard lock(office_.mutex);
    if (in_.messages.empty()) {
      fail_if_lost();
      return false;
    }
    std::copy(in_.messages.front().begin(), in_.messages.front().end(), into.begin());
    in_.messages.pop_front();
    ++in_.taken;
    return true;
  }

 private:
  void fail_if_lost() {
    if (office_.is_closed[peer_]) {
      throw Error(ErrorCode::kPeerLost, peer_,
                  "rank " + std::to_string(peer_) + " is gone (mailbox)");
    }
  }

  PostOffice& office_;
  const int peer_;
  Box& out_;
  Box& in_;
};

class Mailboxes final : public PlainTransport {
 public:
  Mailboxes(std::shared_ptr<PostOffice> office, int rank, int size)
      : office_(std::move(office)), rank_(rank) {
    const std::lock_guard lock(office_->mutex);
    if (office_->is_closed[rank]) {
      throw Error(ErrorCode::kAborted, rank,
                  "rank " + std::to_string(rank) + " has left: a rank cannot join again (mailbox)");
    }
    for (int peer = 0; peer < size; ++peer) {
      channels_.push_back(std::make_unique<MailboxChannel>(*office_, rank, peer));
    }
  }

  PlainChannel& channel(int peer) override { return *channels_[static_cast<std::size_t>(peer)]; }
  void progress() override {}

  // Drops the letters in the boxes, which point into this rank's memory.
  void quiesce() noexcept override {
    const std::lock_guard lock(office_->mutex);
    office_->is_closed[rank_] = true;
    for (auto& [pair, box] : office_->boxes) {
      if (pair.first == rank_) box.messages.clear();
    }
  }

 private:
  std::shared_ptr<PostOffice> office_;
  const int rank_;
  std::vector<std::unique_ptr<MailboxChannel>> channels_;
};

// Post offices by the number that rank 0 publishes.
std::shared_ptr<PostOffice> find_office(const TransportRequest& request) {
  static std::mutex mutex;
  static std::map<std::string, std::shared_ptr<PostOffice>> offices;
  static int last = 0;
  if (request.rank == 0) {
    const std::lock_guard lock(mutex);
    const std::string number = std::to_string(++last);
    offices[number] = std::make_shared<PostOffice>();
    request.store->set("office", number);
    return offices[number];
  }
  const std::string number = request.store->get("office", request.deadline);
  const std::lock_guard lock(mutex);
  return offices.at(number);
}

}  // namespace

std::unique_ptr<Transport> make_mailbox(const TransportRequest& request) {
  auto plain = std::make_unique<Mailboxes>(find_office(request), request.rank, request.size);
  exchange(*request.store, request.rank, request.size, "here", "", request.deadline,
           "find the post office");
  const std::size_t segment_bytes = request.segment_bytes == 0 ? 64 * 1024 : request.segment_bytes;
  return adapt(std::move(plain), {"mailbox", request.rank, request.size, segment_bytes});
}

}  // namespace kolo::test
