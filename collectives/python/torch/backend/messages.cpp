// Messages and the monitored barrier of the backend "kolo".
#include <algorithm>

#include "collectives/python/torch/backend/calls.h"

namespace kolo_torch {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint64_t kBarrierTag = std::uint64_t{1} << 62;  // not a tag of a user
constexpr const char* kBarrierTitle = "kolo:monitored_barrier";

std::uint64_t user_tag(int tag) {
  TORCH_CHECK(tag >= 0, "a tag is not negative, got ", tag);
  return static_cast<std::uint64_t>(tag);
}

Milliseconds left_until(Clock::time_point deadline) {
  return std::max(std::chrono::ceil<Milliseconds>(deadline - Clock::now()), Milliseconds(1));
}

at::Tensor empty_message() { return at::empty({0}, at::kByte); }

}  // namespace

c10::intrusive_ptr<KoloWork> KoloBackend::send_to(Tensors& tensors, int to, std::uint64_t tag,
                                                  Milliseconds timeout) {
  const at::Tensor& tensor = single("send", tensors);
  TORCH_CHECK(to >= 0 && to < size_ && to != rank_, "send: rank ", to,
              " is this rank or none of the group of ", size_);
  auto work = c10::make_intrusive<MessageWork>(group_, WorkKind{c10d::OpType::SEND, "kolo:send"},
                                               sequence_, timeout, tensors, Tensors{});
  try {
    mailbox()->send(*work, packed(tensor), to, tag);
  } catch (...) {
    work->start({});
    throw;
  }
  work->start({});
  return work;
}

c10::intrusive_ptr<ReceiveWork> KoloBackend::receive(Tensors& tensors, int from, std::uint64_t tag,
                                                     const char* title, Milliseconds timeout) {
  const at::Tensor& tensor = single("recv", tensors);
  TORCH_CHECK(from == kAnyRank || (from >= 0 && from < size_ && from != rank_), "recv: rank ", from,
              " is this rank or none of the group of ", size_);
  const auto box = mailbox();
  const auto type = from == kAnyRank ? c10d::OpType::RECVANYSOURCE : c10d::OpType::RECV;
  auto work = c10::make_intrusive<ReceiveWork>(group_, box, WorkKind{type, title}, sequence_,
                                               timeout, tensor, from, tag);
  box->receive(work);
  return work;
}

WorkHandle KoloBackend::send(Tensors& tensors, int to, int tag) {
  return send_to(tensors, to, user_tag(tag), Milliseconds(timeout_ms_));
}

WorkHandle KoloBackend::recv(Tensors& tensors, int from, int tag) {
  TORCH_CHECK(from != kAnyRank, "recv: invalid rank ", from);
  return receive(tensors, from, user_tag(tag), "kolo:recv", Milliseconds(timeout_ms_));
}

WorkHandle KoloBackend::recvAnysource(Tensors& tensors, int tag) {
  return receive(tensors, kAnyRank, user_tag(tag), "kolo:recvAnySource", Milliseconds(timeout_ms_));
}

// Rank 0 waits for a message of each rank, then answers all. It names the ranks that are missing.
void KoloBackend::monitoredBarrier(const c10d::BarrierOptions& opts, bool wait_all_ranks) {
  const Milliseconds timeout = opts.timeout.count() >= 0 ? opts.timeout : Milliseconds(timeout_ms_);
  const std::uint64_t tag = kBarrierTag + barriers_++;
  if (rank_ == 0) {
    collect_barrier(tag, timeout, wait_all_ranks);
  } else {
    follow_barrier(tag, timeout);
  }
}

void KoloBackend::follow_barrier(std::uint64_t tag, Milliseconds timeout) {
  Tensors message{empty_message()};
  try {
    const auto deadline = Clock::now() + timeout;
    send_to(message, 0, tag, timeout)->wait();
    receive(message, 0, tag, kBarrierTitle, left_until(deadline))->wait();
  } catch (const std::exception& error) {
    C10_THROW_ERROR(DistBackendError,
                    c10::str("[kolo] Rank ", rank_,
                             " successfully reached monitoredBarrier, but received errors while "
                             "waiting for send/recv from rank 0. Please check rank 0 logs for "
                             "faulty rank.\n Original exception: \n",
                             error.what()));
  }
}

void KoloBackend::collect_barrier(std::uint64_t tag, Milliseconds timeout, bool wait_all_ranks) {
  TORCH_CHECK(timeout.count() > 0, "[kolo] Rank 0 timed out in monitoredBarrier after 0 ms.");
  const auto deadline = Clock::now() + timeout;
  Tensors message{empty_message()};
  std::vector<c10::intrusive_ptr<ReceiveWork>> works;
  for (int rank = 1; rank < size_; ++rank)
    works.push_back(receive(message, rank, tag, kBarrierTitle, timeout));
  std::string missing;
  int count = 0;
  std::string reason;
  for (int rank = 1; rank < size_; ++rank) {
    try {
      works[static_cast<std::size_t>(rank - 1)]->wait(left_until(deadline));
    } catch (const std::exception& error) {
      missing += (missing.empty() ? "" : ", ") + std::to_string(rank);
      reason = error.what();
      ++count;
      if (!wait_all_ranks) break;
    }
  }
  if (count > 0) {
    for (const auto& work : works) work->abort();
    C10_THROW_ERROR(DistBackendError,
                    c10::str("[kolo] Rank 0: ", count == 1 ? "Rank " : "Ranks ", missing,
                             " failed to pass monitoredBarrier in ", timeout.count(),
                             " ms\n Original exception: \n", reason));
  }
  for (int rank = 1; rank < size_; ++rank) send_to(message, rank, tag, timeout)->wait();
}

}  // namespace kolo_torch
