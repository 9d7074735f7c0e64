// The fake driver's memory: allocations, host memory, pointers and handles.
#include <fcntl.h>
#include <unistd.h>

#include <cstring>

#include "test/transports/cuda/fake_driver_internals.h"

namespace kolo::test {

using cuda::Address;
using played::address_of;
using played::kSeenByDevices;

namespace {

// Content of a handle: a number of the machine, and the location of the memory for other processes.
struct Handle {
  std::uint64_t number = 0;
  std::int32_t process = 0;
  std::int32_t descriptor = 0;
  std::uint64_t bytes = 0;
};
static_assert(sizeof(Handle) <= sizeof(cuda::IpcHandle));

// Null if the memory is gone, with its process or before.
std::unique_ptr<posix::SharedMemory> open_in_process(const Handle& handle) {
  const std::string path =
      "/proc/" + std::to_string(handle.process) + "/fd/" + std::to_string(handle.descriptor);
  posix::Descriptor found(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!found.is_open()) return nullptr;
  try {
    return std::make_unique<posix::SharedMemory>(std::move(found), handle.bytes);
  } catch (const std::exception&) {
    return nullptr;  // another file has that descriptor now
  }
}

}  // namespace

std::byte* FakeDriver::make_memory(std::size_t bytes, Kind kind, int device) {
  const std::lock_guard lock(machine_.mutex_);
  Address memory = 0;
  allocate_kind(&memory, bytes, kind, device);
  return reinterpret_cast<std::byte*>(memory);
}

void FakeDriver::replace(std::byte* memory) {
  const std::lock_guard lock(machine_.mutex_);
  replace_all({memory});
}

void FakeDriver::replace(const std::vector<std::byte*>& memory) {
  const std::lock_guard lock(machine_.mutex_);
  replace_all(memory);
}

void FakeDriver::replace_all(const std::vector<std::byte*>& memory) {
  for (std::byte* const each : memory) end_backing(*ranges_.at(address_of(each)).backing);
  for (std::byte* const each : memory) {
    Range& range = ranges_.at(address_of(each));
    const FakeMachine::Backing& before = *range.backing;
    auto backing = std::make_shared<FakeMachine::Backing>();
    backing->bytes = before.bytes;
    backing->device = before.device;
    backing->memory = before.memory;
    backing->owner = this;
    range.buffer = ++last_buffer_;
    range.backing = std::move(backing);
    begin_block(range, address_of(each));
  }
}

// Places a small allocation into the block of its neighbours.
void FakeDriver::begin_block(Range& range, Address memory) {
  std::shared_ptr<FakeMachine::Block> block;
  if (range.bytes < machine_.block_bytes) {
    auto& shared = blocks_[memory / machine_.block_bytes];
    block = shared.lock();
    if (block == nullptr || block->allocations == 0)
      shared = block = std::make_shared<FakeMachine::Block>();
  } else {
    block = std::make_shared<FakeMachine::Block>();
  }
  ++block->allocations;
  range.backing->block = std::move(block);
}

void FakeDriver::end_backing(FakeMachine::Backing& backing) {
  backing.is_freed = true;
  --backing.block->allocations;
}

// Whether the driver refuses to map `wanted` while `open` is mapped.
bool FakeDriver::is_in_the_way(const Range& open, const Range& wanted) const {
  if (!open.is_import || open.context != wanted.context) return false;
  if (open.handle == wanted.handle) return true;
  const FakeMachine::Backing& one = *open.backing;
  const FakeMachine::Backing& other = *wanted.backing;
  if (one.owner == nullptr || one.owner != other.owner) return false;
  const auto begin = [](const FakeMachine::Backing& backing) {
    return address_of(backing.memory->bytes().data());
  };
  const auto meet = [&](Address unit) {
    return begin(one) / unit <= (begin(other) + other.bytes - 1) / unit &&
           begin(other) / unit <= (begin(one) + one.bytes - 1) / unit;
  };
  return meet(1) || (one.block->allocations == 0 && meet(machine_.block_bytes));
}

int FakeDriver::allocate_kind(Address* memory, std::size_t bytes, Kind kind, int device) {
  std::size_t& used = machine_.used_[device];
  if (bytes > machine_.bytes_per_device - used) return cuda::kOutOfMemory;
  used += bytes;
  Range range;
  range.bytes = bytes;
  range.kind = kind;
  range.buffer = ++last_buffer_;
  range.backing = std::make_shared<FakeMachine::Backing>();
  range.backing->bytes = bytes;
  range.backing->device = device;
  range.backing->owner = this;
  range.backing->memory = std::make_shared<posix::SharedMemory>(bytes);
  *memory = address_of(range.backing->memory->bytes().data());
  begin_block(range, *memory);
  ranges_.emplace(*memory, std::move(range));
  return 0;
}

std::pair<const Address, FakeDriver::Range>* FakeDriver::range_of(Address address) {
  auto found = ranges_.upper_bound(address);
  if (found == ranges_.begin()) return nullptr;
  --found;
  return address - found->first < found->second.bytes ? &*found : nullptr;
}

// Host address of memory that a stream of this process may access; null and a violation otherwise.
std::byte* FakeDriver::resolve(Address address, std::size_t bytes, const char* what) {
  const Address seen = (address & kSeenByDevices) != 0 ? address & ~kSeenByDevices : address;
  auto* const range = range_of(seen);
  const bool is_seen_rightly =
      range != nullptr && range->second.is_host == ((address & kSeenByDevices) != 0);
  if (!is_seen_rightly || bytes > range->second.bytes - (seen - range->first)) {
    violate(std::string(what) + ": not this process's memory");
    return nullptr;
  }
  return reinterpret_cast<std::byte*>(seen);
}

int FakeDriver::allocate(Address* memory, std::size_t bytes) {
  KOLO_ENTER("allocate")
  if (played::pushed_device() < 0) return cuda::kInvalidContext;
  if (machine_.allocations_wait) wait_for_context("allocate");
  return allocate_kind(memory, bytes, Kind::kDevice, played::pushed_device());
}

int FakeDriver::allocate_async(Address* memory, std::size_t bytes, cuda::Stream stream) {
  KOLO_ENTER("allocate_async")
  if (stream_here(stream) == nullptr) return cuda::kInvalidHandle;
  return allocate_kind(memory, bytes, Kind::kPool, played::pushed_device());
}

int FakeDriver::free(Address memory) {
  KOLO_ENTER("free")
  const auto found = ranges_.find(memory);
  if (found == ranges_.end() || found->second.is_import || found->second.is_host) {
    violate("free of what was not allocated");
    return cuda::kInvalidValue;
  }
  if (found->second.kind != Kind::kPool) wait_for_context("free");
  FakeMachine::Backing& backing = *found->second.backing;
  if (backing.times_open != 0) violate("free of memory that a peer has open");
  end_backing(backing);
  machine_.used_[backing.device] -= backing.bytes;
  ranges_.erase(found);
  return 0;
}

int FakeDriver::memory_info(std::size_t* free, std::size_t* total) {
  KOLO_ENTER("memory_info")
  *total = machine_.bytes_per_device;
  *free = machine_.bytes_per_device - machine_.used_[played::pushed_device()];
  return 0;
}

int FakeDriver::allocate_host(void** memory, std::size_t bytes) {
  KOLO_ENTER("allocate_host")
  if (machine_.allocations_wait) wait_for_context("allocate_host");
  Range range;
  range.bytes = bytes;
  range.buffer = ++last_buffer_;
  range.is_host = true;
  range.pinned = std::make_unique<std::byte[]>(bytes);
  *memory = range.pinned.get();
  ranges_.emplace(address_of(*memory), std::move(range));
  return 0;
}

int FakeDriver::free_host(void* memory) {
  KOLO_ENTER("free_host")
  wait_for_context("free_host");
  if (ranges_.erase(address_of(memory)) == 0) violate("free_host of what was not allocated");
  return 0;
}

int FakeDriver::register_host(void* memory, std::size_t bytes, unsigned) {
  KOLO_ENTER("register_host")
  if (machine_.allocations_wait) wait_for_context("register_host");
  Range range;
  range.bytes = bytes;
  range.buffer = ++last_buffer_;
  range.is_host = true;
  if (!ranges_.emplace(address_of(memory), std::move(range)).second) violate("registered twice");
  return 0;
}

int FakeDriver::unregister_host(void* memory) {
  KOLO_ENTER("unregister_host")
  wait_for_context("unregister_host");
  if (ranges_.erase(address_of(memory)) == 0) violate("unregistered without having been");
  return 0;
}

int FakeDriver::host_address(Address* address, void* memory) {
  KOLO_ENTER("host_address")
  *address = address_of(memory) | kSeenByDevices;
  return 0;
}

int FakeDriver::pointer_attribute(void* value, cuda::PointerAttribute attribute, Address pointer) {
  KOLO_ENTER("pointer_attribute")
  const auto* const found = range_of(pointer);
  if (found == nullptr) return cuda::kInvalidValue;
  const Range& range = found->second;
  const bool is_for_all =
      attribute == cuda::kMemoryType || attribute == cuda::kIsManaged || !range.is_host;
  if (!is_for_all) return cuda::kInvalidValue;  // as documented, only for allocations
  const auto give = [value](auto given) { std::memcpy(value, &given, sizeof(given)); };
  switch (attribute) {
    case cuda::kMemoryType:
      give(std::uint32_t{range.is_host ? 1U : 2U});
      break;
    case cuda::kBufferId:
      give(range.buffer);
      break;
    case cuda::kIsManaged:
      give(std::uint32_t{range.kind == Kind::kManaged ? 1U : 0U});
      break;
    case cuda::kDeviceOrdinal:
      give(range.backing ? range.backing->device : 0);
      break;
    case cuda::kIsIpcCapable:
      give(std::uint32_t{range.kind == Kind::kDevice && !range.is_import ? 1U : 0U});
      break;
    case cuda::kRangeStart:
      give(found->first);
      break;
    case cuda::kRangeSize:
      give(range.bytes);
      break;
    case cuda::kMempool:
      give(std::uint64_t{range.kind == Kind::kPool ? 1U : 0U});
      break;
  }
  return 0;
}

int FakeDriver::ipc_handle(cuda::IpcHandle* handle, Address memory) {
  KOLO_ENTER("ipc_handle")
  const auto found = ranges_.find(memory);
  if (found == ranges_.end() || found->second.kind != Kind::kDevice || found->second.is_import ||
      found->second.is_host)
    return cuda::kInvalidValue;
  FakeMachine::Backing& backing = *found->second.backing;
  if (backing.handle == 0) backing.handle = ++machine_.last_handle_;
  const Handle made{backing.handle, ::getpid(), backing.memory->descriptor(), backing.bytes};
  machine_.handles_[made.number] = found->second.backing;
  std::memcpy(handle->bytes.data(), &made, sizeof(made));
  return 0;
}

int FakeDriver::ipc_open(Address* memory, const cuda::IpcHandle& handle, unsigned) {
  KOLO_ENTER("ipc_open")
  Handle said;
  std::memcpy(&said, handle.bytes.data(), sizeof(said));
  Range range;
  if (said.process == ::getpid()) {
    const auto found = machine_.handles_.find(said.number);
    if (found == machine_.handles_.end() || found->second->is_freed) return cuda::kMapFailed;
    range.backing = found->second;
    if (range.backing->owner == this) {
      violate("a handle opened in the process that made it");
      return cuda::kInvalidContext;
    }
    range.mapping = std::make_unique<posix::SharedMemory>(
        posix::Descriptor(::fcntl(range.backing->memory->descriptor(), F_DUPFD_CLOEXEC, 0)),
        range.backing->bytes);
  } else {
    range.mapping = open_in_process(said);
    if (range.mapping == nullptr) return cuda::kMapFailed;
    range.backing = std::make_shared<FakeMachine::Backing>();
    range.backing->bytes = said.bytes;
  }
  range.bytes = range.backing->bytes;
  range.buffer = ++last_buffer_;
  range.is_import = true;
  range.context = played::pushed_device();
  range.handle = {said.process, said.number};
  for (const auto& [address, open] : ranges_) {
    if (is_in_the_way(open, range)) return cuda::kAlreadyMapped;
  }
  ++range.backing->times_open;
  *memory = address_of(range.mapping->bytes().data());
  ranges_.emplace(*memory, std::move(range));
  return 0;
}

int FakeDriver::ipc_close(Address memory) {
  KOLO_ENTER("ipc_close")
  const auto found = ranges_.find(memory);
  if (found == ranges_.end() || !found->second.is_import) {
    violate("ipc_close of what was not opened");
    return cuda::kInvalidValue;
  }
  wait_for_context("ipc_close");
  --found->second.backing->times_open;
  ranges_.erase(found);
  return 0;
}

}  // namespace kolo::test
