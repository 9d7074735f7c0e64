#include "transports/cuda/ipc_mappings.h"

#include <algorithm>

#include "transports/cuda/driver.h"

namespace kolo::cuda {

IpcMappings::Opened IpcMappings::open(Driver& driver, Context context, const IpcHandle& handle,
                                      Use use) {
  const std::lock_guard lock(mutex_);
  auto opening = std::ranges::find_if(mappings_, [&](const Opening& known) {
    return known.context == context && known.handle.bytes == handle.bytes &&
           (known.buffer == use.buffer || known.buffer == 0 || use.buffer == 0);
  });
  if (opening == mappings_.end()) {
    Address mapped = 0;
    int code = driver.ipc_open(&mapped, handle, kLazyPeerAccess);
    if (code == kAlreadyMapped && close_unneeded(driver, context))
      code = driver.ipc_open(&mapped, handle, kLazyPeerAccess);
    if (code != kSuccess) return {code, 0, 0, code == kAlreadyMapped && is_any_to_end(context)};
    mappings_.push_back({context, handle, use.buffer, mapped, {}});
    opening = std::prev(mappings_.end());
  }
  if (opening->buffer == 0) opening->buffer = use.buffer;
  opening->uses.emplace(++last_ticket_, use);
  by_ticket_.emplace(last_ticket_, &*opening);
  return {kSuccess, opening->mapped, last_ticket_, false};
}

bool IpcMappings::use(std::uint64_t ticket, std::uint64_t work) {
  const std::lock_guard lock(mutex_);
  const auto found = by_ticket_.find(ticket);
  if (found == by_ticket_.end()) return false;
  std::uint64_t& last = found->second->uses.at(ticket).work;
  last = std::max(last, work);
  return true;
}

void IpcMappings::close(Driver& driver, std::uint64_t ticket) {
  const std::lock_guard lock(mutex_);
  const auto found = by_ticket_.find(ticket);
  if (found == by_ticket_.end()) return;
  Opening* const opening = found->second;
  by_ticket_.erase(found);
  opening->uses.erase(ticket);
  if (!opening->uses.empty()) return;
  driver.ipc_close(opening->mapped);
  mappings_.remove_if([opening](const Opening& known) { return &known == opening; });
}

void IpcMappings::close(Driver& driver, Context context, Address mapped) {
  std::uint64_t ticket = 0;
  {
    const std::lock_guard lock(mutex_);
    for (const Opening& known : mappings_) {
      if (known.context != context || known.mapped != mapped) continue;
      for (const auto& [number, use] : known.uses) ticket = use.worker == nullptr ? number : ticket;
    }
  }
  close(driver, ticket);
}

bool IpcMappings::close_unneeded(Driver& driver, Context context) {
  const auto closed = std::erase_if(mappings_, [&](const Opening& known) {
    const bool is_needed = std::ranges::any_of(known.uses, [](const auto& each) {
      const Use& use = each.second;
      return use.worker == nullptr || use.work > use.worker->done();
    });
    if (known.context != context || is_needed) return false;
    for (const auto& [ticket, use] : known.uses) by_ticket_.erase(ticket);
    driver.ipc_close(known.mapped);
    return true;
  });
  return closed != 0;
}

bool IpcMappings::is_any_to_end(Context context) const {
  return std::ranges::any_of(mappings_, [context](const Opening& known) {
    return known.context == context && std::ranges::all_of(known.uses, [](const auto& each) {
             const Use& use = each.second;
             return use.worker != nullptr && use.work <= use.worker->given();
           });
  });
}

}  // namespace kolo::cuda
