#include "transports/cuda/ipc_mappings.h"

#include <algorithm>

#include "transports/cuda/driver.h"

namespace kolo::inline v0::cuda {

// Null if there is none that the use can share.
IpcMappings::Opening* IpcMappings::find(Context context, const IpcHandle& handle, const Use& use) {
  const auto found = std::ranges::find_if(mappings_, [&](const Opening& known) {
    const bool is_ending = known.mapped != 0 && known.uses.empty();
    return !is_ending && known.context == context && known.handle.bytes == handle.bytes &&
           (known.buffer == use.buffer || known.buffer == 0 || use.buffer == 0);
  });
  return found == mappings_.end() ? nullptr : &*found;
}

IpcMappings::Opened IpcMappings::add_use(Opening& opening, const Use& use) {
  if (opening.buffer == 0) opening.buffer = use.buffer;
  opening.uses.emplace(++last_ticket_, use);
  by_ticket_.emplace(last_ticket_, &opening);
  return {kSuccess, opening.mapped, last_ticket_, false};
}

IpcMappings::Opened IpcMappings::open(Driver& driver, Context context, const IpcHandle& handle,
                                      Use use) {
  Opening* opening = nullptr;
  bool may_open_later = false;
  {
    const std::lock_guard lock(mutex_);
    opening = find(context, handle, use);
    if (opening != nullptr && opening->mapped == 0) return {kAlreadyMapped, 0, 0, true};
    if (opening != nullptr) return add_use(*opening, use);
    may_open_later = is_any_to_end_locked(context);
    opening = &mappings_.emplace_back(Opening{context, handle, use.buffer, 0, {}});
  }
  Address mapped = 0;
  const int code = driver.ipc_open(&mapped, handle, kLazyPeerAccess);
  const std::lock_guard lock(mutex_);
  if (code != kSuccess) {
    mappings_.remove_if([opening](const Opening& known) { return &known == opening; });
    return {code, 0, 0, may_open_later};
  }
  opening->mapped = mapped;
  return add_use(*opening, use);
}

bool IpcMappings::use(std::uint64_t ticket, std::uint64_t work) {
  const std::lock_guard lock(mutex_);
  const auto found = by_ticket_.find(ticket);
  if (found == by_ticket_.end()) return false;
  std::uint64_t& last = found->second->uses.at(ticket).work;
  last = std::max(last, work);
  return true;
}

Address IpcMappings::end_locked(std::uint64_t ticket) {
  const auto found = by_ticket_.find(ticket);
  if (found == by_ticket_.end()) return 0;
  Opening& opening = *found->second;
  by_ticket_.erase(found);
  opening.uses.erase(ticket);
  return opening.uses.empty() ? opening.mapped : 0;
}

Address IpcMappings::end(std::uint64_t ticket) {
  const std::lock_guard lock(mutex_);
  return end_locked(ticket);
}

Address IpcMappings::end(Context context, Address mapped) {
  const std::lock_guard lock(mutex_);
  for (const Opening& known : mappings_) {
    if (known.context != context || known.mapped != mapped) continue;
    for (const auto& [ticket, use] : known.uses) {
      if (use.worker == nullptr) return end_locked(ticket);
    }
  }
  return 0;
}

std::vector<Address> IpcMappings::end_unneeded(Context context) {
  const std::lock_guard lock(mutex_);
  std::vector<Address> ended;
  for (Opening& known : mappings_) {
    const bool is_needed = std::ranges::any_of(known.uses, [](const auto& each) {
      const Use& use = each.second;
      return use.worker == nullptr || use.work > use.worker->done();
    });
    if (known.context != context || known.uses.empty() || is_needed) continue;
    for (const auto& [ticket, use] : known.uses) by_ticket_.erase(ticket);
    known.uses.clear();
    ended.push_back(known.mapped);
  }
  return ended;
}

void IpcMappings::forget(Address mapped) {
  const std::lock_guard lock(mutex_);
  // The oldest: another thread may have opened the same place since the driver's close, and be
  // ending it, too.
  const auto closed = std::ranges::find_if(mappings_, [mapped](const Opening& known) {
    return known.mapped == mapped && known.uses.empty();
  });
  if (closed != mappings_.end()) mappings_.erase(closed);
}

bool IpcMappings::is_any_ending(Context context) const {
  const std::lock_guard lock(mutex_);
  return std::ranges::any_of(mappings_, [context](const Opening& known) {
    return known.context == context && known.mapped != 0 && known.uses.empty();
  });
}

bool IpcMappings::is_any_to_end(Context context) const {
  const std::lock_guard lock(mutex_);
  return is_any_to_end_locked(context);
}

bool IpcMappings::is_any_to_end_locked(Context context) const {
  return std::ranges::any_of(mappings_, [context](const Opening& known) {
    return known.context == context && std::ranges::all_of(known.uses, [](const auto& each) {
             const Use& use = each.second;
             return use.worker != nullptr && use.work <= use.worker->given();
           });
  });
}

}  // namespace kolo::inline v0::cuda
