#include "collectives/python/torch/backend/work.h"

#include <ATen/core/ivalue.h>

#include <algorithm>
#include <thread>
#include <utility>

namespace kolo_torch {

using Clock = std::chrono::steady_clock;

void FutureThreads::run(std::function<void()> task) {
  const std::lock_guard lock(mutex_);
  tasks_.push_back(std::move(task));
  if (std::cmp_less_equal(tasks_.size(), idle_)) {
    changed_.notify_one();
  } else {
    std::thread([self = shared_from_this()] { self->serve(); }).detach();
  }
}

void FutureThreads::serve() {
  constexpr std::chrono::seconds kIdle{5};
  std::unique_lock lock(mutex_);
  while (true) {
    while (!tasks_.empty()) {
      {
        const auto task = std::move(tasks_.front());
        tasks_.pop_front();
        lock.unlock();
        task();
      }
      lock.lock();
    }
    ++idle_;
    const bool has_task = changed_.wait_for(lock, kIdle, [&] { return !tasks_.empty(); });
    --idle_;
    if (!has_task) return;
  }
}

void InFlight::add() {
  const std::lock_guard lock(mutex_);
  ++count_;
}

void InFlight::remove() {
  const std::lock_guard lock(mutex_);
  --count_;
  if (count_ == 0) changed_.notify_all();
}

bool InFlight::wait_until_none(Milliseconds timeout) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, timeout, [&] { return count_ == 0; });
}

KoloWork::KoloWork(std::shared_ptr<const Group> group, WorkKind kind, std::uint64_t sequence,
                   Milliseconds timeout, const std::vector<at::Tensor>& inputs,
                   std::vector<at::Tensor> outputs)
    : Work(group->name.rank, kind.type, kind.title, std::optional<std::vector<at::Tensor>>(inputs)),
      group_(std::move(group)),
      title_(kind.title),
      timeout_(timeout),
      sequence_(sequence),
      outputs_(std::move(outputs)) {}

KoloWork::~KoloWork() {
  for (kolo_work* operation : operations_) kolo_work_free(operation);
}

void KoloWork::add(kolo_work* operation) {
  operations_.push_back(operation);
  ++open_;
}

void KoloWork::start(std::function<void()> after) {
  after_ = std::move(after);
  note_issue();
  if (!has_own_timeout_) group_->in_flight->add();
  for (kolo_work* operation : operations_) {
    auto self = c10::intrusive_ptr<KoloWork>::reclaim_copy(this);
    if (kolo_when_done(operation, on_end, self.get()) == KOLO_OK) {
      static_cast<void>(self.release());
    } else {
      end_one(
          exception_of(group_->name, title_, KOLO_ERROR_OTHER, kolo_last_failure(nullptr).text));
    }
  }
  end_one(nullptr);
}

void KoloWork::note_issue() {
  thread_state_.emplace();
  issued_at_ = Clock::now();
}

void KoloWork::finish_at_once(const std::function<void()>& after) {
  if (after) after();
  finish();
}

void KoloWork::on_end(void* context, const kolo_failure* failure) {
  const auto self = c10::intrusive_ptr<KoloWork>::reclaim(static_cast<KoloWork*>(context));
  self->end_one(failure == nullptr ? nullptr
                                   : exception_of(self->group_->name, self->title_, failure->result,
                                                  failure->text));
}

// An operation has ended. The last one ends the work.
void KoloWork::end_one(std::exception_ptr exception) {
  if (exception) {
    const std::lock_guard lock(mutex_);
    if (!first_) first_ = std::move(exception);
  }
  if (--open_ > 0) return;
  std::exception_ptr failure;
  {
    const std::lock_guard lock(mutex_);
    failure = first_;
  }
  if (!failure && after_) {
    try {
      after_();
    } catch (...) {
      failure = std::current_exception();
    }
  }
  after_ = nullptr;
  kept_.clear();
  if (!has_own_timeout_) group_->in_flight->remove();
  end(failure);
}

void KoloWork::fail(std::exception_ptr exception) { end(std::move(exception)); }

void KoloWork::end(std::exception_ptr exception) {
  finish(std::move(exception));
  complete_future();
}

bool KoloWork::is_ended() {
  const std::lock_guard lock(mutex_);
  return completed_;
}

void KoloWork::complete_future() {
  {
    const std::lock_guard lock(mutex_);
    if (!future_ || is_future_complete_) return;
    is_future_complete_ = true;
  }
  group_->futures->run([self = c10::intrusive_ptr<KoloWork>::reclaim_copy(this)] {
    const at::ThreadLocalStateGuard guard(*self->thread_state_);
    if (self->exception_) {
      self->future_->setErrorIfNeeded(self->exception_);
    } else {
      self->future_->markCompleted(c10::IValue(self->outputs_));
    }
  });
}

c10::intrusive_ptr<c10::ivalue::Future> KoloWork::getFuture() {
  const std::lock_guard lock(mutex_);
  if (future_) return future_;
  future_ = c10::make_intrusive<c10::ivalue::Future>(c10::ListType::create(c10::TensorType::get()));
  is_future_complete_ = completed_;
  if (completed_ && exception_) {
    future_->setError(exception_);
  } else if (completed_) {
    future_->markCompleted(c10::IValue(outputs_));
  }
  return future_;
}

void KoloWork::help(std::optional<Clock::time_point> deadline) {
  for (kolo_work* operation : operations_) {
    if (!deadline) {
      kolo_wait(operation);
      continue;
    }
    const auto left = std::chrono::ceil<Milliseconds>(*deadline - Clock::now()).count();
    if (kolo_wait_for(operation, std::max<std::int64_t>(left, 0)) != KOLO_OK) return;
  }
}

bool KoloWork::wait(Milliseconds timeout) {
  std::optional<Clock::time_point> deadline;
  if (timeout == kNoTimeout && has_own_timeout_) {
    timeout = timeout_;
    deadline = issued_at_ + timeout_;
  } else if (timeout != kNoTimeout) {
    deadline = Clock::now() + timeout;
  }
  if (!is_ended()) help(deadline);
  std::unique_lock lock(mutex_);
  if (!deadline) {
    cv_.wait(lock, [&] { return completed_; });
  } else if (!cv_.wait_until(lock, *deadline, [&] { return completed_; })) {
    lock.unlock();
    cancel();
    const std::string text = c10::str(describe(), " after ", timeout.count(), " ms");
    std::rethrow_exception(exception_of(group_->name, title_, KOLO_ERROR_DEADLINE, text));
  }
  if (exception_) std::rethrow_exception(exception_);
  return true;
}

}  // namespace kolo_torch
