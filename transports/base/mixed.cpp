#include "transports/base/mixed.h"

#include <fmt/format.h>
#include <sys/epoll.h>
#include <optional>
#include <string>
#include <utility>

#include "transports/base/check.h"
#include "transports/posix/epoll.h"

namespace kolo::inline v0 {

namespace {

class MixedTransport final : public Transport {
 public:
  MixedTransport(std::unique_ptr<Transport> local, std::unique_ptr<Transport> remote,
                 std::vector<bool> is_local)
      : local_(std::move(local)),
        remote_(std::move(remote)),
        is_local_(std::move(is_local)),
        name_(fmt::format("{}+{}", local_->name(), remote_->name())) {
    if (local_->descriptor() < 0 || remote_->descriptor() < 0) return;
    sleep_.emplace();
    sleep_->add(local_->descriptor(), EPOLLIN, 0);
    sleep_->add(remote_->descriptor(), EPOLLIN, 1);
  }

  std::string_view name() const override { return name_; }
  std::string_view name_to(int peer) const override { return part(peer).name(); }
  int rank() const override { return remote_->rank(); }
  int size() const override { return remote_->size(); }
  Channel& channel(int peer) override { return part(peer).channel(peer); }

  void progress() override {
    local_->progress();
    remote_->progress();
  }

  int descriptor() const override { return sleep_ ? sleep_->descriptor() : -1; }

  bool arm() override {
    if (!sleep_ || !local_->arm()) return false;
    if (remote_->arm()) return true;
    local_->disarm();
    return false;
  }

  void disarm() override {
    local_->disarm();
    remote_->disarm();
  }

  bool shares_core_with_awaited_peer() override { return local_->shares_core_with_awaited_peer(); }

  void quiesce() noexcept override {
    local_->quiesce();
    remote_->quiesce();
  }

  std::shared_ptr<std::byte[]> allocate(std::size_t bytes) override {
    return local_->allocate(bytes);
  }

  std::string carrier() const override {
    const std::string local = local_->carrier();
    const std::string remote = remote_->carrier();
    return local.empty() || remote.empty() ? local + remote : fmt::format("{}, {}", local, remote);
  }

 private:
  Transport& part(int peer) const {
    check(peer >= 0 && peer < size(), "no channel to this rank");
    return is_local_[static_cast<std::size_t>(peer)] ? *local_ : *remote_;
  }

  std::unique_ptr<Transport> local_;
  std::unique_ptr<Transport> remote_;
  const std::vector<bool> is_local_;
  const std::string name_;
  std::optional<posix::Epoll> sleep_;
};

}  // namespace

std::unique_ptr<Transport> make_mixed(std::unique_ptr<Transport> local,
                                      std::unique_ptr<Transport> remote,
                                      std::vector<bool> is_local) {
  check(local->rank() == remote->rank() && local->size() == remote->size() &&
            is_local.size() == static_cast<std::size_t>(remote->size()),
        "make_mixed: both transports must have the same ranks");
  return std::make_unique<MixedTransport>(std::move(local), std::move(remote), std::move(is_local));
}

}  // namespace kolo::inline v0
