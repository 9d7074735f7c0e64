#include "transports/conformance/ranks.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "transports/error.h"
#include "transports/store/all_gather.h"

namespace kolo::inline v0::conformance {

namespace {

constexpr auto kPatience = std::chrono::seconds(60);

// Many ranks share the cores: they yield soon, and sleep soon after.
Settings patient_settings() {
  Settings settings;
  settings.wait = WaitKind::kYield;
  settings.spin = std::chrono::microseconds(50);
  return settings;
}

}  // namespace

// Content is a part of one endless sequence of bytes. The start of the part depends on sender,
// receiver and index. The period is a prime, so that no two parts of a segment are equal.
Bytes pattern(int from, int to, int index, std::size_t bytes) {
  constexpr std::size_t kPeriod = 65521;
  static const Bytes row = [] {
    Bytes made(kPeriod);
    for (std::size_t i = 0; i < kPeriod; ++i)
      made[i] = static_cast<std::byte>((i * 131) ^ (i >> 8));
    return made;
  }();
  std::size_t begin = static_cast<std::size_t>(from * 7 + to * 17 + index * 31) % kPeriod;
  Bytes result(bytes);
  for (std::size_t done = 0; done < bytes; begin = 0) {
    const std::size_t length = std::min(bytes - done, kPeriod - begin);
    std::memcpy(result.data() + done, row.data() + begin, length);
    done += length;
  }
  return result;
}

void expect(bool holds, std::string_view what) {
  if (!holds) throw std::runtime_error("expected: " + std::string(what));
}

void expect_equal(std::span<const std::byte> got, std::span<const std::byte> expected,
                  std::string_view what) {
  expect(got.size() == expected.size(), std::string(what) + ": as many bytes");
  if (got.empty() || std::memcmp(got.data(), expected.data(), got.size()) == 0) return;
  const auto differs = std::mismatch(got.begin(), got.end(), expected.begin()).first;
  throw std::runtime_error("expected: " + std::string(what) + ": the right byte at " +
                           std::to_string(differs - got.begin()) + " of " +
                           std::to_string(got.size()));
}

bool is_refused(const std::function<void()>& call) {
  try {
    call();
  } catch (const std::invalid_argument&) {
    return true;
  }
  return false;
}

Error error_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    return error;
  }
  throw std::runtime_error("expected: an error, but nothing was thrown");
}

Rank::Rank(const Subject& subject, const TransportRequest& request, std::shared_ptr<Store> job)
    : request_(request),
      job_(std::move(job)),
      transport_(subject.make(request_)),
      policy_(request.size, 0, patient_settings()) {}

std::size_t Rank::segment_bytes() {
  return to(rank() == 0 ? 1 : 0).capabilities().preferred_segment_bytes;
}

void Rank::until(const std::function<bool()>& is_done, std::string_view what) {
  while (!is_done()) {
    transport_->progress();
    if (policy_.pause(*transport_, *job_, request_.deadline)) continue;
    expect(false, std::string(what) + " within the deadline" + under_way());
  }
  policy_.moved();
}

std::string Rank::under_way() {
  std::string text;
  for (int peer = 0; peer < size(); ++peer) {
    const std::string there = peer == rank() ? "" : to(peer).under_way();
    if (!there.empty()) text += "; with rank " + std::to_string(peer) + ": " + there;
  }
  return text;
}

void Rank::send(int peer, std::span<const std::byte> data, Out out, unsigned flags) {
  Channel& channel = to(peer);
  if (out == Out::kSend) return until([&] { return channel.send(data, flags); }, "credit to send");
  if (out == Out::kGathered) {
    const std::size_t words = std::min<std::size_t>(data.size() / 8, 3);
    const auto head = data.first(words * 8);
    const auto body = data.subspan(words * 8);
    return until([&] { return channel.send_gathered(head, body, data.size(), flags); },
                 "credit to send two pieces");
  }
  std::byte* slot = nullptr;
  until([&] { return (slot = channel.reserve(data.size())) != nullptr; }, "a slot");
  expect(reinterpret_cast<std::uintptr_t>(slot) % kSegmentAlignment == 0, "an aligned slot");
  std::copy(data.begin(), data.end(), slot);
  channel.commit(flags);
}

Bytes Rank::receive(int peer, std::size_t bytes, In in) {
  Channel& channel = to(peer);
  if (in == In::kReceive || in == In::kReceiveCold) {
    Bytes got(bytes);
    const unsigned flags = in == In::kReceiveCold ? kCold : kPlain;
    until([&] { return channel.receive(got, flags); }, "a segment");
    return got;
  }
  const std::byte* segment = nullptr;
  if (in == In::kViewUnaligned) {
    until([&] { return (segment = channel.view_unaligned(bytes)) != nullptr; }, "a view");
    expect_equal({channel.view_unaligned(bytes), bytes}, {segment, bytes}, "a view asked again");
    segment = channel.view(bytes);  // view() of a segment that is in view already
  } else {
    until([&] { return (segment = channel.view(bytes)) != nullptr; }, "a view");
  }
  expect(reinterpret_cast<std::uintptr_t>(segment) % kSegmentAlignment == 0, "an aligned view");
  expect(channel.view(bytes) == segment, "the same view when asked again");
  Bytes got(segment, segment + bytes);
  channel.release();
  return got;
}

void Rank::drain(int peer) {
  until([&] { return to(peer).is_drained(); }, "a drained channel");
  sent_[peer].clear();
}

void Rank::send_pattern(int peer, int index, std::size_t bytes, Out out, unsigned flags) {
  sent_[peer].push_back(pattern(rank(), peer, index, bytes));
  send(peer, sent_[peer].back(), out, flags);
}

void Rank::expect_pattern(int peer, int index, std::size_t bytes, In in) {
  expect_equal(receive(peer, bytes, in), pattern(peer, rank(), index, bytes),
               "segment " + std::to_string(index) + " from rank " + std::to_string(peer));
}

void Rank::meet(std::string_view where) {
  exchange(*job_, rank(), size(), where, "", request_.deadline, "meet in a clause");
}

void run_ranks(const Subject& subject, int size, const std::function<void(Rank&)>& body,
               std::size_t segment_bytes) {
  const auto job = make_local_store();
  const auto channels = prefixed(job, "transport/");
  std::mutex mutex;
  std::string first_failure;
  std::vector<std::thread> threads;
  for (int number = 0; number < size; ++number) {
    threads.emplace_back([&, number] {
      try {
        const TransportRequest request{number,        size, channels, Clock::now() + kPatience,
                                       segment_bytes, size};
        Rank rank(subject, request, job);
        body(rank);
      } catch (const std::exception& error) {
        const std::lock_guard lock(mutex);
        if (first_failure.empty()) first_failure = by_rank(number, error.what());
        job->post_failure(first_failure);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  if (!first_failure.empty()) throw std::runtime_error(subject.name + ": " + first_failure);
}

}  // namespace kolo::inline v0::conformance
