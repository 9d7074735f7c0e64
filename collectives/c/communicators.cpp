// Communicators, their bootstrap, failures and memory, of the C interface.
#include <chrono>
#include <cstring>
#include <map>
#include <memory_resource>
#include <new>

#include "collectives/c/handles.h"
#include "collectives/schedule.h"
#include "collectives/version.h"
#include "transports/bootstrap.h"

namespace kolo::inline v0::c_interface {

namespace {

// The caller's functions of kolo_options.
class CallerMemory final : public std::pmr::memory_resource {
 public:
  explicit CallerMemory(const kolo_options& options) : options_(options) {}

 private:
  void* do_allocate(std::size_t bytes, std::size_t alignment) override {
    const InCallback in_callback;
    void* const memory = options_.allocate(options_.memory_context, bytes, alignment);
    if (memory == nullptr) throw std::bad_alloc();
    return memory;
  }
  void do_deallocate(void* memory, std::size_t bytes, std::size_t alignment) override {
    const InCallback in_callback;
    options_.deallocate(options_.memory_context, memory, bytes, alignment);
  }
  bool do_is_equal(const memory_resource& other) const noexcept override { return this == &other; }

  kolo_options options_;
};

CommunicatorOptions options_of(const kolo_options* given) {
  const kolo_options fields = fields_of(given, "kolo_options");
  CommunicatorOptions options;
  if (fields.transport != nullptr) options.transport = fields.transport;
  if (fields.name != nullptr) options.name = fields.name;
  options.timeout = timeout_of(fields.timeout_ms);
  options.segment_bytes = fields.segment_bytes;
  options.host_id = text_of(fields.host_id);
  options.progress_thread = fields.progress_thread != 0;
  if (fields.reproducibility < KOLO_FAST || fields.reproducibility > KOLO_INVARIANT)
    refuse_number(fields.reproducibility, "kolo_reproducibility, such as KOLO_ORDERED");
  options.reproducibility = static_cast<Reproducibility>(fields.reproducibility);
  options.tuning = text_of(fields.tuning);
  options.profile = fields.profile != 0;
  options.timeline = text_of(fields.timeline);
  if (fields.log != nullptr) {
    options.log = [log = fields.log, context = fields.log_context](std::string_view line) {
      const InCallback in_callback;
      log(context, std::string(line).c_str());
    };
  }
  if ((fields.allocate == nullptr) != (fields.deallocate == nullptr))
    refuse("kolo_options has one of allocate and deallocate: give both, or none");
  if (fields.allocate != nullptr) options.memory = std::make_shared<CallerMemory>(fields);
  return options;
}

// The error code of a result that kolo_abort_for() takes.
ErrorCode code_of(kolo_result result) {
  if (result == KOLO_ERROR_OUT_OF_MEMORY) return ErrorCode::kOutOfMemory;
  if (result < KOLO_ERROR_PEER_LOST || result > KOLO_ERROR_SYSTEM) {
    refuse(
        "kolo_abort_for: the result is not one of KOLO_ERROR_PEER_LOST to KOLO_ERROR_SYSTEM, or "
        "KOLO_ERROR_OUT_OF_MEMORY");
  }
  return static_cast<ErrorCode>(result - KOLO_ERROR_PEER_LOST);
}

kolo::Error gather_failed(int rank, int status) {
  return {kolo::ErrorCode::kUnavailable, rank,
          "rank " + std::to_string(rank) + ": the caller's function all_gather failed with " +
              std::to_string(status) +
              " in kolo_create_by_all_gather(): it must succeed on every rank; see why it failed"};
}

// Memory of kolo_allocate(), by address, as kolo_release() is given only the address.
class Allocations {
 public:
  void add(std::shared_ptr<std::byte[]> memory) {
    const std::lock_guard lock(mutex_);
    void* const address = memory.get();
    held_[address] = std::move(memory);
  }
  void remove(void* address) {
    std::shared_ptr<std::byte[]> last;
    const std::lock_guard lock(mutex_);
    const auto found = held_.find(address);
    if (found == held_.end()) return;
    last = std::move(found->second);
    held_.erase(found);
  }

 private:
  std::mutex mutex_;
  std::map<void*, std::shared_ptr<std::byte[]>> held_;
};

Allocations& allocations() {
  static Allocations all;
  return all;
}

}  // namespace

}  // namespace kolo::inline v0::c_interface

using namespace kolo::c_interface;

const char* kolo_version(void) {
  static const std::string text(kolo::version());
  return text.c_str();
}

kolo_result kolo_create(const kolo_options* options, int rank, int size,
                        const kolo_job_store* store, kolo_communicator** made) {
  return guarded(nullptr, [&] {
    prepare(made, "made");
    if (store == nullptr) refuse("the store is null");
    make(made, kolo::Communicator(rank, size, store->store, options_of(options)));
  });
}

kolo_result kolo_create_from_environment(const kolo_options* options, kolo_communicator** made) {
  return guarded(nullptr, [&] {
    prepare(made, "made");
    make(made, kolo::Communicator::from_environment(options_of(options)));
  });
}

kolo_result kolo_create_by_all_gather(const kolo_options* options, int rank, int size,
                                      kolo_all_gather_function all_gather, void* context,
                                      kolo_communicator** made) {
  return guarded(nullptr, [&] {
    prepare(made, "made");
    if (all_gather == nullptr) refuse("the function all_gather is null");
    const kolo::CommunicatorOptions given = options_of(options);
    const auto gather = [&](std::span<const std::byte> mine, std::span<std::byte> all) {
      if (const int status = all_gather(context, mine.data(), mine.size(), all.data()); status != 0)
        throw gather_failed(rank, status);
    };
    auto store = kolo::store_by_all_gather(rank, size, gather, deadline_in(given.timeout.count()));
    make(made, kolo::Communicator(rank, size, std::move(store), given));
  });
}

void kolo_free(kolo_communicator* communicator) {
  if (communicator == nullptr) return;
  const std::shared_ptr<Shared> shared = communicator->shared;
  shared->calls.end(communicator);
}

kolo_result kolo_split(kolo_communicator* communicator, int color, int key,
                       kolo_communicator** made) {
  const auto make_group = [&] {
    prepare(made, "made");
    auto group = held(communicator).split(color, key);
    if (group) make(made, *std::move(group));
  };
  return counted(communicator, make_group, RunningCalls::Kind::kMakesGroup);
}

kolo_result kolo_duplicate(kolo_communicator* communicator, kolo_communicator** made) {
  const auto make_group = [&] {
    prepare(made, "made");
    make(made, held(communicator).duplicate());
  };
  return counted(communicator, make_group, RunningCalls::Kind::kMakesGroup);
}

kolo_result kolo_subset(kolo_communicator* communicator, const int* ranks, int count,
                        kolo_communicator** made) {
  const auto make_group = [&] {
    prepare(made, "made");
    if (count < 0 || (ranks == nullptr && count > 0))
      refuse("`ranks` is null, or `count` is below 0");
    make(made, held(communicator).subset({ranks, static_cast<std::size_t>(count)}));
  };
  return counted(communicator, make_group, RunningCalls::Kind::kMakesGroup);
}

kolo_result kolo_abort(kolo_communicator* communicator, const char* reason) {
  return counted(communicator, [&] { held(communicator).abort(text_of(reason)); });
}

kolo_result kolo_abort_for(kolo_communicator* communicator, kolo_result result, int peer,
                           const char* reason) {
  return counted(communicator,
                 [&] { held(communicator).abort(code_of(result), peer, text_of(reason)); });
}

kolo_result kolo_check(kolo_communicator* communicator) {
  return counted(communicator, [&] {
    if (const auto failure = held(communicator).failure()) throw *failure;
  });
}

kolo_result kolo_progress(kolo_communicator* communicator, int* is_active) {
  return counted(communicator, [&] {
    const bool active = held(communicator).progress();
    if (is_active != nullptr) *is_active = active ? 1 : 0;
  });
}

kolo_result kolo_descriptor(kolo_communicator* communicator, int* descriptor) {
  return counted(communicator, [&] {
    if (descriptor == nullptr) refuse("`descriptor` is null; the result is stored there");
    *descriptor = held(communicator).descriptor();
  });
}

kolo_result kolo_allocate(kolo_communicator* communicator, size_t bytes, void** memory) {
  return counted(communicator, [&] {
    prepare(memory, "memory");
    auto made = held(communicator).allocate(bytes);
    void* const address = made.get();
    allocations().add(std::move(made));
    *memory = address;
  });
}

void kolo_release(void* memory) { allocations().remove(memory); }

size_t kolo_chunk_begin(size_t count, int size, int rank) {
  if (rank < 0 || rank >= size) return 0;
  return kolo::chunk_begin(count, size, rank);
}

size_t kolo_chunk_count(size_t count, int size, int rank) {
  if (rank < 0 || rank >= size) return 0;
  return kolo::chunk_count(count, size, rank);
}
