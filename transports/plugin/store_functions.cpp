#include "transports/plugin/store_functions.h"

#include <fmt/format.h>
#include <algorithm>
#include <cstring>
#include <exception>
#include <utility>

#include "transports/error.h"
#include "transports/store/all_gather.h"

namespace kolo::inline v0::plugin {

namespace {

const StoreFunctions& owner_of(const kolo_store* store) {
  return *static_cast<const StoreFunctions::WithOwner*>(store)->owner;
}

kolo_status fail(kolo_error* error, ErrorCode code, int peer, std::string_view text) {
  error->code = static_cast<std::int32_t>(code);
  error->peer = peer;
  const std::size_t bytes = std::min(text.size(), sizeof error->text - 1);
  std::memcpy(error->text, text.data(), bytes);
  error->text[bytes] = '\0';
  return KOLO_FAILED;
}

// Converts exceptions to a status, since the caller may be C code.
template <typename Body>
kolo_status guarded(kolo_error* error, const Body& body) {
  try {
    return body();
  } catch (const Error& failure) {
    return fail(error, failure.code(), failure.peer(), failure.what());
  } catch (const std::exception& failure) {
    return fail(error, ErrorCode::kSystem, kNoPeer, failure.what());
  }
}

void copy_out(const std::string& value, void* into, std::size_t room, std::size_t* bytes) {
  std::memcpy(into, value.data(), std::min(room, value.size()));
  *bytes = value.size();
}

std::string_view view_of(const void* value, std::size_t bytes) {
  return {static_cast<const char*>(value), bytes};
}

Deadline deadline_of(std::int64_t nanoseconds_of_clock) {
  return Deadline(
      std::chrono::duration_cast<Clock::duration>(std::chrono::nanoseconds(nanoseconds_of_clock)));
}

kolo_status set(const kolo_store* store, const char* key, const void* value, std::size_t bytes,
                kolo_error* error) {
  return guarded(error, [&] {
    owner_of(store).store().set(key, view_of(value, bytes));
    return KOLO_DONE;
  });
}

kolo_status try_get(const kolo_store* store, const char* key, void* into, std::size_t room,
                    std::size_t* bytes, kolo_error* error) {
  return guarded(error, [&] {
    const auto value = owner_of(store).store().try_get(key);
    if (!value) return KOLO_NOT_NOW;
    copy_out(*value, into, room, bytes);
    return KOLO_DONE;
  });
}

kolo_status get(const kolo_store* store, const char* key, std::int64_t deadline_ns, void* into,
                std::size_t room, std::size_t* bytes, kolo_error* error) {
  return guarded(error, [&] {
    copy_out(owner_of(store).store().get(key, deadline_of(deadline_ns)), into, room, bytes);
    return KOLO_DONE;
  });
}

kolo_status gather(const kolo_store* store, const char* key, const void* value, std::size_t bytes,
                   std::int64_t deadline_ns, const char* purpose, void* into, kolo_error* error) {
  return guarded(error, [&] {
    const StoreFunctions& owner = owner_of(store);
    const auto values = exchange(owner.store(), owner.rank(), owner.size(), key,
                                 view_of(value, bytes), deadline_of(deadline_ns), purpose);
    for (std::size_t rank = 0; rank < values.size(); ++rank) {
      if (values[rank].size() != bytes) {
        throw Error(ErrorCode::kMismatch, static_cast<int>(rank),
                    fmt::format("rank {}: rank {} gave {} bytes as '{}', this rank {}: use the "
                                "same library on every rank",
                                owner.rank(), rank, values[rank].size(), key, bytes));
      }
      std::memcpy(static_cast<char*>(into) + rank * bytes, values[rank].data(), bytes);
    }
    return KOLO_DONE;
  });
}

kolo_status check_job(const kolo_store* store, kolo_error* error) {
  return guarded(error, [&] {
    if (const auto failure = owner_of(store).store().failure())
      throw Error(ErrorCode::kAborted, kNoPeer, *failure);
    return KOLO_DONE;
  });
}

int descriptor(const kolo_store* store) { return owner_of(store).store().descriptor(); }

}  // namespace

std::int64_t nanoseconds(Deadline deadline) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(deadline.time_since_epoch()).count();
}

StoreFunctions::StoreFunctions(std::shared_ptr<Store> store, int rank, int size)
    : store_(std::move(store)), rank_(rank), size_(size) {
  kolo_store& functions = with_owner_;
  functions = {sizeof(kolo_store), set, try_get, get, gather, check_job, descriptor};
  with_owner_.owner = this;
}

}  // namespace kolo::inline v0::plugin
