// Memory of other processes: the functions of Device that export, open and close it.
#include <fmt/format.h>
#include <chrono>
#include <thread>

#include "transports/cuda/device.h"
#include "transports/error.h"

namespace kolo::inline v0::cuda {

namespace {

constexpr const char* kIpcAdvice =
    "; processes that share device memory must see the same devices and, in containers, each "
    "other's processes (--ipc=host --pid=host); or use another transport";

constexpr const char* kMappedAdvice =
    "; another library of this process has it open, or an older mapping there is still in use";

}  // namespace

IpcHandle Device::export_memory(const std::byte* base) const {
  const Entered here(*this);
  IpcHandle handle{};
  const int code = driver_->ipc_handle(&handle, address_of(base));
  if (code != kSuccess) fail(code, "cuIpcGetMemHandle", kIpcAdvice);
  return handle;
}

std::size_t Device::bytes_from(Address place) const {
  Address begin = 0;
  std::size_t bytes = 0;
  check_call(driver_->pointer_attribute(&begin, kRangeStart, place),
             "cuPointerGetAttribute(RANGE_START_ADDR)");
  check_call(driver_->pointer_attribute(&bytes, kRangeSize, place),
             "cuPointerGetAttribute(RANGE_SIZE)");
  const Address before = place - begin;
  return before < bytes ? bytes - before : 0;
}

void Device::fail_to_open(int code, const std::string& whose) const {
  fail(code, fmt::format("cuIpcOpenMemHandle_v2 of {}'s memory", whose),
       code == kOutOfMemory     ? free_memory()
       : code == kAlreadyMapped ? kMappedAdvice
                                : kIpcAdvice);
}

Device::Opened Device::open_for(IpcMappings::Use use, const IpcHandle& handle, std::size_t bytes,
                                const std::string& whose) const {
  const Entered here(*this);
  IpcMappings& mappings = driver_->openings();
  auto opened = mappings.open(*driver_, context_.get(), handle, use);
  bool may_open_later = opened.may_open_later;
  if (opened.code == kAlreadyMapped) {
    const auto unneeded = mappings.end_unneeded(context_.get());
    const bool is_any_ending = mappings.is_any_ending(context_.get());
    for (const Address mapped : unneeded) put_off_closing(mapped);
    frees().run_all();
    if (is_any_ending && !mappings.is_any_ending(context_.get()))
      opened = mappings.open(*driver_, context_.get(), handle, use);
    may_open_later |= opened.may_open_later || mappings.is_any_to_end(context_.get());
  }
  if (opened.code == kAlreadyMapped && may_open_later) return {};
  if (opened.code != kSuccess) fail_to_open(opened.code, whose);
  try {
    const std::size_t there = bytes_from(opened.mapped);
    if (there < bytes) {
      throw Error(ErrorCode::kProtocol, kNoPeer,
                  fmt::format("{} offers memory of {} bytes, but the driver has {}: run the "
                              "same build of kolo on every rank",
                              whose, bytes, there));
    }
  } catch (...) {
    close(opened.ticket);
    throw;
  }
  return {pointer_to(opened.mapped), opened.ticket};
}

std::byte* Device::open(const IpcHandle& handle, std::size_t bytes,
                        const std::string& whose) const {
  constexpr auto kPatience = std::chrono::seconds(10);  // while other work has yet to end
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (true) {
    if (const Opened opened = open_for({}, handle, bytes, whose); opened.mapped != nullptr)
      return opened.mapped;
    if (std::chrono::steady_clock::now() > deadline) fail_to_open(kAlreadyMapped, whose);
    std::this_thread::yield();
  }
}

bool Device::use(std::uint64_t ticket, std::uint64_t work) const {
  return driver_->openings().use(ticket, work);
}

void Device::put_off_closing(Address mapped) const noexcept {
  put_off([mapped](Driver& driver) {
    driver.ipc_close(mapped);
    driver.openings().forget(mapped);
  });
}

void Device::close(std::uint64_t ticket) const noexcept {
  if (const Address mapped = driver_->openings().end(ticket); mapped != 0) put_off_closing(mapped);
}

void Device::close(std::byte* mapped) const noexcept {
  const Address unused = driver_->openings().end(context_.get(), address_of(mapped));
  if (unused != 0) put_off_closing(unused);
}

}  // namespace kolo::inline v0::cuda
