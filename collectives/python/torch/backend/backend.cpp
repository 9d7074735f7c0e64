#include "collectives/python/torch/backend/backend.h"

#include <Python.h>

#include <algorithm>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <utility>

#include "collectives/python/torch/backend/torch_store.h"

namespace kolo_torch {
namespace {

// Releases Python's lock while it lives, if this thread holds it: a thread that is joined may need
// it, to free a tensor.
class WithoutPython {
 public:
  WithoutPython() {
    if (Py_IsInitialized() != 0 && PyGILState_Check() != 0) state_ = PyEval_SaveThread();
  }
  ~WithoutPython() {
    if (state_ != nullptr) PyEval_RestoreThread(state_);
  }
  WithoutPython(const WithoutPython&) = delete;
  WithoutPython& operator=(const WithoutPython&) = delete;

 private:
  PyThreadState* state_ = nullptr;
};

void free_communicator(kolo_communicator* communicator) {
  const WithoutPython released;
  kolo_free(communicator);
}

}  // namespace

Issuer::Issuer(const GroupName& group, const char* title, kolo_communicator* communicator,
               std::int64_t timeout_ms, KoloWork* work)
    : group_(group), title_(title), communicator_(communicator), work_(work) {
  call_.size = sizeof call_;
  call_.timeout_ms = timeout_ms;
  if (timeout_ms != 0) options_ = &call_;
}

void Issuer::set_scale(double scale) {
  call_.scale = scale;
  options_ = &call_;
}

KoloBackend::KoloBackend(const StoreHandle& store, int rank, int size, Milliseconds timeout,
                         const std::string& name)
    : Backend(rank, size),
      process_(getpid()),
      timeout_ms_(timeout.count()),
      usual_timeout_ms_(std::max<std::int64_t>(timeout.count(), 1)),
      options_(c10::make_intrusive<Options>("kolo", timeout)) {
  group_->name = {name, rank, size};
  communicator_ = connect(c10::make_intrusive<c10d::PrefixStore>("collectives", store));
  const auto messages = c10::make_intrusive<c10d::PrefixStore>("messages", store);
  mailbox_ = std::make_shared<Mailbox>(
      group_, connect(messages),
      c10::make_intrusive<c10d::PrefixStore>("mailbox", own_connection(store)));
  init();
}

KoloBackend::~KoloBackend() { shutdown(); }

std::shared_ptr<kolo_communicator> KoloBackend::connect(const StoreHandle& store) const {
  const std::shared_ptr<kolo_job_store> job(open_torch_store(store), kolo_store_free);
  kolo_options options{};
  options.size = sizeof options;
  options.timeout_ms = usual_timeout_ms_;
  options.progress_thread = 1;
  kolo_communicator* made = nullptr;
  require(group_->name, "init", kolo_create(&options, rank_, size_, job.get(), &made), nullptr);
  return {made, free_communicator};
}

std::shared_ptr<kolo_communicator> KoloBackend::communicator() const {
  const std::lock_guard lock(mutex_);
  TORCH_CHECK(communicator_, to_string(group_->name), ": the group is shut down");
  return communicator_;
}

std::shared_ptr<Mailbox> KoloBackend::mailbox() const {
  const std::lock_guard lock(mutex_);
  TORCH_CHECK(mailbox_, to_string(group_->name), ": the group is shut down");
  return mailbox_;
}

c10::intrusive_ptr<c10d::Backend::Options> KoloBackend::getBackendOptions() {
  options_->timeout = Milliseconds(timeout_ms_);
  return options_;
}

#ifdef KOLO_TORCH_HAS_ERROR_TYPE
c10d::ErrorType KoloBackend::getError() {
  std::shared_ptr<kolo_communicator> communicator;
  {
    const std::lock_guard lock(mutex_);
    communicator = communicator_;
  }
  if (!communicator) return c10d::ErrorType::SUCCESS;
  switch (kolo_check(communicator.get())) {
    case KOLO_OK:
      return c10d::ErrorType::SUCCESS;
    case KOLO_ERROR_DEADLINE:
      return c10d::ErrorType::TIMEOUT;
    case KOLO_ERROR_PEER_LOST:
    case KOLO_ERROR_ABORTED:
      return c10d::ErrorType::REMOTE_ERROR;
    default:
      return c10d::ErrorType::COMM_ERROR;
  }
}
#endif

void KoloBackend::abort() {
  std::shared_ptr<kolo_communicator> communicator;
  std::shared_ptr<Mailbox> mailbox;
  {
    const std::lock_guard lock(mutex_);
    is_aborted_ = true;
    communicator = communicator_;
    mailbox = mailbox_;
  }
  const WithoutPython released;
  constexpr const char* kReason = "the program called abort() of the process group";
  if (communicator) kolo_abort(communicator.get(), kReason);
  if (mailbox) mailbox->abort(kReason);
}

// Waits for the collectives in flight: peers need this rank for them.
void KoloBackend::shutdown() {
  std::shared_ptr<kolo_communicator> communicator;
  std::shared_ptr<Mailbox> mailbox;
  bool is_aborted = false;
  {
    const std::lock_guard lock(mutex_);
    communicator = std::exchange(communicator_, nullptr);
    mailbox = std::exchange(mailbox_, nullptr);
    is_aborted = is_aborted_;
  }
  if (!communicator || getpid() != process_) return;
  const WithoutPython released;
  if (!is_aborted) group_->in_flight->wait_until_none(Milliseconds(timeout_ms_));
  if (mailbox) mailbox->leave();
  communicator.reset();
}

// A template, as Options of torch 2.6 have no name.
template <typename Options>
static std::string name_of(const Options& options) {
  if constexpr (requires { options.group_name; }) return options.group_name;
  return "";
}

c10::intrusive_ptr<c10d::Backend> KoloBackend::split(const StoreHandle& store,
                                                     const std::vector<int>& ranks,
                                                     const c10::intrusive_ptr<Options>& opts) {
  const auto found = std::ranges::find(ranks, rank_);
  if (found == ranks.end()) return nullptr;
  const Milliseconds timeout = opts ? opts->timeout : Milliseconds(timeout_ms_);
  const std::string name = opts ? name_of(*opts) : "";
  return c10::make_intrusive<KoloBackend>(store, static_cast<int>(found - ranks.begin()),
                                          static_cast<int>(ranks.size()), timeout,
                                          name.empty() ? "split" : name);
}

// Issues the operations of `body`. `kept` holds memory of theirs; `after` stores results.
WorkHandle KoloBackend::run(const Call& call, const Tensors& inputs, const Tensors& outputs,
                            Tensors kept, Body body, std::function<void()> after) {
  const auto held = communicator();
  auto work =
      c10::make_intrusive<KoloWork>(group_, call.kind, ++sequence_, call.timeout, inputs, outputs);
  const std::int64_t timeout_ms = call.timeout.count() == usual_timeout_ms_
                                      ? 0
                                      : std::max<std::int64_t>(call.timeout.count(), 1);
  Issuer issuer(group_->name, call.kind.title, held.get(), timeout_ms,
                call.is_async ? work.get() : nullptr);
  if (!call.is_async) {
    body(issuer);
    work->finish_at_once(after);
    return work;
  }
  for (at::Tensor& tensor : kept) work->keep(std::move(tensor));
  try {
    body(issuer);
  } catch (...) {  // operations before the failed one may be in flight: they keep the work
    work->start({});
    throw;
  }
  work->start(std::move(after));
  return work;
}

void KoloBackend::require_root(const char* operation, std::int64_t root) const {
  TORCH_CHECK(root >= 0 && root < size_, operation, ": invalid root rank: ", root,
              ", expected one of 0 to ", size_ - 1);
}

}  // namespace kolo_torch
