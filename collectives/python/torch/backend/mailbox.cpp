#include "collectives/python/torch/backend/mailbox.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <thread>
#include <utility>

namespace kolo_torch {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint64_t kMessage = 0;
constexpr std::uint64_t kFarewell = 1;
constexpr std::chrono::seconds kPatience{5};  // for farewells

kolo_call without_timeout() {
  kolo_call call{};
  call.size = sizeof call;
  call.timeout_ms = kNever;
  return call;
}

std::string announcement(int rank) { return "awaits/" + std::to_string(rank); }
std::string departure(int rank) { return "left/" + std::to_string(rank); }

}  // namespace

ReceiveWork::ReceiveWork(std::shared_ptr<const Group> group, std::shared_ptr<Mailbox> mailbox,
                         WorkKind kind, std::uint64_t sequence, Milliseconds timeout,
                         at::Tensor tensor, int from, std::uint64_t tag)
    : KoloWork(std::move(group), kind, sequence, timeout, {tensor}, {tensor}),
      mailbox_(mailbox),
      tensor_(tensor.is_contiguous() ? tensor : at::empty(tensor.sizes(), tensor.options())),
      target_(tensor),
      from_(from),
      tag_(tag) {
  has_own_timeout_ = true;
  note_issue();
}

void ReceiveWork::take(int peer, std::exception_ptr exception) {
  source_ = peer;
  if (!exception && !target_.is_same(tensor_)) target_.copy_(tensor_);
  end(std::move(exception));
}

// Drives kolo on this thread, as the progress thread alone would cost a thread's wake-up.
void ReceiveWork::help(std::optional<Clock::time_point> deadline) {
  constexpr std::int64_t kSlice = 100;
  constexpr std::chrono::microseconds kPause{50};
  while (!is_ended()) {
    std::int64_t left = kSlice;
    if (deadline) {
      left = std::chrono::ceil<Milliseconds>(*deadline - Clock::now()).count();
      if (left <= 0) return;
    }
    const auto mailbox = mailbox_.lock();
    if (!mailbox) return;
    const auto awaited = mailbox->awaited(from_);
    std::vector<kolo_work*> works;
    for (const auto& one : awaited) works.push_back(one.get());
    std::size_t index = 0;
    if (!works.empty()) kolo_wait_any(works.data(), works.size(), std::min(left, kSlice), &index);
    std::unique_lock lock(mutex_);  // another thread may be in the callback
    cv_.wait_for(lock, kPause, [&] { return completed_; });
  }
}

void ReceiveWork::cancel() {
  if (const auto mailbox = mailbox_.lock()) mailbox->cancel(*this);
}

std::string ReceiveWork::describe() const {
  return from_ == kAnyRank ? c10::str("no message from any rank with tag ", tag_)
                           : c10::str("no message from rank ", from_, " with tag ", tag_);
}

Mailbox::Mailbox(std::shared_ptr<const Group> group,
                 std::shared_ptr<kolo_communicator> communicator,
                 c10::intrusive_ptr<c10d::Store> store)
    : group_(std::move(group)),
      rank_(group_->name.rank),
      size_(group_->name.size),
      communicator_(std::move(communicator)),
      store_(std::move(store)),
      peers_(static_cast<std::size_t>(group_->name.size)) {}

void Mailbox::send(KoloWork& work, const at::Tensor& tensor, int to, std::uint64_t tag) {
  std::shared_ptr<kolo_communicator> communicator;
  {
    const std::lock_guard lock(mutex_);
    if (failure_) std::rethrow_exception(failure_);
    communicator = communicator_;
  }
  TORCH_CHECK(communicator, to_string(group_->name), ": the group is shut down");
  const at::Tensor envelope = at::empty({sizeof(Envelope)}, at::kByte);
  auto* fields = static_cast<Envelope*>(envelope.mutable_data_ptr());
  *fields = {tag, tensor.nbytes(), kMessage, 0};
  work.keep(envelope);
  work.keep(tensor);
  const kolo_call call = without_timeout();
  const auto issue = [&](const void* data, std::size_t bytes) {
    kolo_work* operation = nullptr;
    require(group_->name, "send",
            kolo_send(communicator.get(), data, bytes, KOLO_UINT8, to, &call, &operation),
            communicator.get());
    work.add(operation);
  };
  const std::lock_guard lock(send_mutex_);
  issue(fields, sizeof(Envelope));
  if (tensor.nbytes() > 0) issue(tensor.const_data_ptr(), tensor.nbytes());
}

void Mailbox::receive(const c10::intrusive_ptr<ReceiveWork>& work) {
  {
    const std::lock_guard lock(mutex_);
    if (failure_) std::rethrow_exception(failure_);
    TORCH_CHECK(communicator_, to_string(group_->name), ": the group is shut down");
  }
  handle([this, work] { post(work); });
}

// Runs the event with the lock held, then the actions that it asked for without the lock. One
// thread at a time does so: operations are issued in the order of the events.
void Mailbox::handle(Step event) {
  std::unique_lock lock(mutex_);
  events_.push_back(std::move(event));
  if (is_handling_) return;
  is_handling_ = true;
  const auto self = shared_from_this();
  while (!events_.empty() || !actions_.empty()) {
    const bool is_event = !events_.empty();
    auto& steps = is_event ? events_ : actions_;
    const Step step = std::move(steps.front());
    steps.pop_front();
    if (is_event) {
      step();
    } else {
      lock.unlock();
      step();
      lock.lock();
    }
  }
  is_handling_ = false;
}

void Mailbox::post(const c10::intrusive_ptr<ReceiveWork>& work) {
  for (int peer = 0; peer < size_; ++peer) {
    if (work->from_ != peer && work->from_ != kAnyRank) continue;
    if (take_arrival(work, peer)) return;
  }
  posted_.push_back(work);
  await_envelopes();
}

// Serves the receive with data that has come, or comes, already.
bool Mailbox::take_arrival(const c10::intrusive_ptr<ReceiveWork>& work, int peer) {
  auto& arrivals = peers_[static_cast<std::size_t>(peer)].arrivals;
  const auto found = std::ranges::find_if(arrivals, [&](const auto& arrival) {
    return !arrival->taker && !arrival->is_dropped && work->tag_ == arrival->tag;
  });
  if (found == arrivals.end()) return false;
  (*found)->taker = work;
  if ((*found)->is_complete) on_data(peer, *found);
  return true;
}

// Awaits an envelope from each rank that may serve a posted receive.
void Mailbox::await_envelopes() {
  for (int peer = 0; peer < size_; ++peer) {
    const Peer& state = peers_[static_cast<std::size_t>(peer)];
    if (peer == rank_ || state.envelope || state.has_left) continue;
    bool is_from_any = false;
    bool is_needed = false;
    for (const auto& work : posted_) {
      is_needed = is_needed || work->from_ == peer || work->from_ == kAnyRank;
      is_from_any = is_from_any || work->from_ == kAnyRank;
    }
    if (!is_needed) continue;
    peers_[static_cast<std::size_t>(peer)].envelope = std::make_shared<Envelope>();
    actions_.push_back([this, peer, is_from_any] {
      if (is_from_any && !announce_and_look(peer)) {
        handle([this, peer] {
          peers_[static_cast<std::size_t>(peer)].envelope.reset();
          peers_[static_cast<std::size_t>(peer)].has_left = true;
        });
      } else {
        await_envelope(peer);
      }
    });
  }
}

void Mailbox::await_envelope(int peer) {
  std::shared_ptr<Envelope> envelope;
  {
    const std::lock_guard lock(mutex_);
    envelope = peers_[static_cast<std::size_t>(peer)].envelope;
  }
  issue_receive(peer, envelope.get(), sizeof(Envelope),
                [this, peer, envelope](const kolo_failure*) { on_envelope(peer, envelope); });
}

// Stores that this rank awaits envelopes. False: the peer has left.
bool Mailbox::announce_and_look(int peer) {
  try {
    announce();
    return !store_->check({departure(peer)});
  } catch (...) {
    return true;  // without a store nothing can be known
  }
}

void Mailbox::announce() {
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(is_announced_, true)) return;
  }
  store_->set(announcement(rank_), std::string("1"));
  store_->add("awaiting", 1);
}

// An event: a peer's envelope has come.
void Mailbox::on_envelope(int peer, const std::shared_ptr<Envelope>& envelope) {
  Peer& from = peers_[static_cast<std::size_t>(peer)];
  from.envelope.reset();
  if (envelope->kind == kFarewell) {
    from.has_left = true;
    fail_receives(peer, exception_of(group_->name, "recv", KOLO_ERROR_PEER_LOST,
                                     c10::str("rank ", peer, " has shut its group down")));
    return;
  }
  auto arrival = std::make_shared<Arrival>();
  arrival->tag = envelope->tag;
  const auto found = std::ranges::find_if(
      posted_, [&](const auto& work) { return work->accepts(peer, envelope->tag); });
  void* place = nullptr;
  if (found != posted_.end()) {
    const auto work = *found;
    posted_.erase(found);
    if (work->tensor_.nbytes() == envelope->bytes) {
      arrival->taker = work;
      place = work->tensor_.mutable_data_ptr();
    } else {
      arrival->is_dropped = true;
      actions_.push_back([work, peer, failure = mismatch(*work, peer, envelope->bytes)] {
        work->take(peer, failure);
      });
    }
  }
  if (place == nullptr) {
    arrival->data = at::empty({static_cast<std::int64_t>(envelope->bytes)}, at::kByte);
    place = arrival->data.mutable_data_ptr();
  }
  from.arrivals.push_back(arrival);
  if (envelope->bytes == 0) {
    on_data(peer, arrival);
  } else {
    actions_.push_back([this, peer, place, arrival, bytes = envelope->bytes] {
      issue_receive(peer, place, bytes,
                    [this, peer, arrival](const kolo_failure*) { on_data(peer, arrival); });
    });
  }
  await_envelopes();
}

// An event: the data of a message has come, or its receive has.
void Mailbox::on_data(int peer, std::shared_ptr<Arrival> arrival) {
  arrival->is_complete = true;
  if (!arrival->taker && !arrival->is_dropped) return;
  std::erase(peers_[static_cast<std::size_t>(peer)].arrivals, arrival);
  if (arrival->is_dropped) return;
  actions_.push_back([this, work = arrival->taker, data = arrival->data, peer] {
    std::exception_ptr failure;
    if (data.defined() && data.nbytes() != work->tensor_.nbytes()) {
      failure = mismatch(*work, peer, data.nbytes());
    } else if (data.defined() && data.nbytes() > 0) {
      std::memcpy(work->tensor_.mutable_data_ptr(), data.const_data_ptr(), data.nbytes());
    }
    work->take(peer, failure);
  });
}

// An event: the communicator has failed, or is being closed.
void Mailbox::on_failure(const kolo_failure& failure) {
  if (!failure_) failure_ = exception_of(group_->name, "recv", failure.result, failure.text);
  fail_receives(kAnyRank, failure_);
  for (Peer& peer : peers_) {
    peer.envelope.reset();
    for (const auto& arrival : std::exchange(peer.arrivals, {})) {
      if (!arrival->taker) continue;
      actions_.push_back([work = arrival->taker, cause = failure_] { work->take(-1, cause); });
    }
  }
}

// Fails the posted receives from `peer` alone; of kAnyRank: all.
void Mailbox::fail_receives(int peer, const std::exception_ptr& exception) {
  std::erase_if(posted_, [&](const auto& work) {
    if (peer != kAnyRank && work->from_ != peer) return false;
    actions_.push_back([work, exception] { work->take(-1, exception); });
    return true;
  });
}

void Mailbox::issue_receive(int peer, void* data, std::size_t bytes, Callback callback) {
  std::shared_ptr<kolo_communicator> communicator;
  {
    const std::lock_guard lock(mutex_);
    communicator = communicator_;
  }
  const auto fail = [this](kolo_failure failure) {
    handle([this, failure, text = std::string(failure.text)]() mutable {
      failure.text = text.c_str();
      on_failure(failure);
    });
  };
  if (!communicator) return fail({KOLO_ERROR_ABORTED, KOLO_NO_PEER, "the group is shut down"});
  const kolo_call call = without_timeout();
  kolo_work* made = nullptr;
  if (kolo_receive(communicator.get(), data, bytes, KOLO_UINT8, peer, &call, &made) != KOLO_OK)
    return fail(kolo_last_failure(communicator.get()));
  const std::shared_ptr<kolo_work> operation(made, kolo_work_free);
  {
    const std::lock_guard lock(mutex_);
    peers_[static_cast<std::size_t>(peer)].current = operation;
  }
  struct Context {
    std::shared_ptr<Mailbox> self;
    Callback callback;
  };
  auto context = std::make_unique<Context>(Context{shared_from_this(), std::move(callback)});
  const auto done = [](void* given, const kolo_failure* failure) {
    const std::unique_ptr<Context> owned(static_cast<Context*>(given));
    Mailbox& self = *owned->self;
    if (failure != nullptr) {
      kolo_failure copy = *failure;
      self.handle([&self, copy, text = std::string(failure->text)]() mutable {
        copy.text = text.c_str();
        self.on_failure(copy);
      });
    } else {
      self.handle([callback = owned->callback] { callback(nullptr); });
    }
  };
  if (kolo_when_done(operation.get(), done, context.get()) == KOLO_OK) {
    static_cast<void>(context.release());
  } else {
    fail(kolo_last_failure(nullptr));
  }
}

std::exception_ptr Mailbox::mismatch(const ReceiveWork& work, int peer, std::uint64_t bytes) const {
  return exception_of(group_->name, "recv", KOLO_ERROR_MISMATCH,
                      c10::str("rank ", peer, " sent ", bytes, " bytes, and the tensor has ",
                               work.tensor_.nbytes(), ": give both ranks the same shape and type"));
}

std::vector<std::shared_ptr<kolo_work>> Mailbox::awaited(int from) {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<kolo_work>> found;
  for (int peer = 0; peer < size_; ++peer) {
    const auto& current = peers_[static_cast<std::size_t>(peer)].current;
    if (current && (from == peer || from == kAnyRank)) found.push_back(current);
  }
  return found;
}

void Mailbox::cancel(ReceiveWork& work) {
  bool was_posted = false;
  {
    const std::lock_guard lock(mutex_);
    was_posted = std::erase_if(posted_, [&](const auto& one) { return one.get() == &work; }) > 0;
  }
  if (!was_posted) return;
  work.end(exception_of(group_->name, "recv", KOLO_ERROR_ABORTED, "the receive was taken back"));
  try {
    announce();
  } catch (...) {  // without a store no rank can send a farewell; leave() waits in vain
  }
}

void Mailbox::abort(const char* reason) {
  std::shared_ptr<kolo_communicator> communicator;
  {
    const std::lock_guard lock(mutex_);
    communicator = communicator_;
  }
  if (communicator) kolo_abort(communicator.get(), reason);
}

bool Mailbox::is_awaiting() {
  const std::lock_guard lock(mutex_);
  return std::ranges::any_of(peers_, [](const Peer& peer) { return peer.envelope != nullptr; });
}

void Mailbox::say_farewell() {
  store_->set(departure(rank_), std::string("1"));
  if (store_->add("awaiting", 0) == 0) return;
  const kolo_call call = without_timeout();
  static constexpr Envelope farewell{0, 0, kFarewell, 0};
  for (int peer = 0; peer < size_; ++peer) {
    if (peer == rank_ || !store_->check({announcement(peer)})) continue;
    kolo_work* operation = nullptr;
    if (kolo_send(communicator_.get(), &farewell, sizeof farewell, KOLO_UINT8, peer, &call,
                  &operation) == KOLO_OK)
      kolo_wait_for(operation, Milliseconds(kPatience).count());
    kolo_work_free(operation);
  }
}

void Mailbox::wait_for_farewells() {
  const auto until = Clock::now() + kPatience;
  while (is_awaiting() && Clock::now() < until) {
    kolo_progress(communicator_.get(), nullptr);
    std::this_thread::sleep_for(Milliseconds(1));
  }
}

void Mailbox::leave() {
  {
    const std::lock_guard lock(mutex_);
    if (!communicator_) return;
  }
  try {
    if (!failure_) say_farewell();
  } catch (...) {  // the store has ended with rank 0
  }
  if (!failure_) wait_for_farewells();
  std::shared_ptr<kolo_communicator> last;
  const std::lock_guard lock(mutex_);
  last = std::move(communicator_);
  communicator_ = nullptr;
}

}  // namespace kolo_torch
