// Fuzzer of the ucx channel over a fake UCX, which delivers arbitrary messages. The channel accepts
// a message, ignores it, or throws Error. It returns all memory that UCX lends exactly once.
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "test/fuzz/input.h"
#include "test/transports/ucx/fake_ucx.h"
#include "transports/error.h"
#include "transports/ucx/channel.h"

using namespace kolo;
using namespace kolo::fuzz;
using test::played;

namespace {

constexpr std::size_t kSegmentBytes = 1024;
constexpr std::uint32_t kToken = 5;

class Script {
 public:
  explicit Script(Input& input) : input_(input) {
    // On different hosts, so without liveness connections.
    shared_.addresses = {{"a", "", "x", 4, kSegmentBytes}, {"b", "", "y", kToken, kSegmentBytes}};
    channel_ = std::make_unique<ucx::UcxChannel>(shared_, 1, kSegmentBytes, kSegmentBytes);
  }

  void play() {
    while (!input_.is_empty()) {
      try {
        step();
      } catch (const Error&) {
      }
    }
    channel_->close();
    channel_->drop();
    // UCX takes offers back while they are fetched.
    for (const auto& fetch : played().fetches) lent_.erase(fetch.offer);
    for (void* const data : played().released)
      require(lent_.erase(data) == 1, "what goes back to UCX was lent, and goes back once");
    require(lent_.empty(), "all that UCX lends goes back to it");
  }

 private:
  void step() {
    switch (input_.below(7)) {
      case 0:
      case 1:
        return bring();
      case 2: {
        const std::size_t bytes = input_.number<std::uint16_t>() % (kSegmentBytes + 1);
        if (is_viewing_ || is_receiving_) return;
        const std::byte* const data = channel_->view(bytes);
        if (data == nullptr) return;
        is_viewing_ = true;
        unsigned sum = 0;
        for (std::size_t i = 0; i < bytes; ++i) sum += static_cast<unsigned>(data[i]);
        require(sum < 256 * (kSegmentBytes + 1), "a view can be read");
        return;
      }
      case 3:
        if (is_viewing_) channel_->release();
        is_viewing_ = false;
        return;
      case 4:
        if (is_viewing_) return;
        if (!is_receiving_) place_.resize(input_.number<std::uint16_t>() % (kSegmentBytes + 1));
        is_receiving_ = true;
        is_receiving_ = !channel_->receive(place_, kPlain);
        return;
      case 5: {
        const unsigned flags = input_.below(2) == 0 ? kPlain : kMore;
        const std::size_t bytes = input_.number<std::uint8_t>();
        channel_->send({data_.data(), bytes}, flags);
        channel_->is_drained();
        return;
      }
      default:
        return finish_fetch();
    }
  }

  void bring() {
    const auto kind = static_cast<ucx::Kind>(input_.below(ucx::kKinds));
    ucx::Header header;
    header.token = input_.below(8) == 0 ? input_.number<std::uint32_t>() : kToken;
    header.from = 1;
    header.number = input_.below(8) == 0 ? input_.number<std::uint32_t>() : input_.below(32);
    header.released = input_.below(32);
    std::vector<std::byte> bytes(ucx::kHeaderBytes + input_.below(80));
    std::memcpy(bytes.data(), &header, ucx::kHeaderBytes);
    const auto read = ucx::read_header(bytes.data(), bytes.size());
    if (!read) return;
    const std::size_t length = input_.number<std::uint16_t>() % (kSegmentBytes + 10);
    const unsigned way = input_.below(3);
    memory_.push_back(allocate_aligned(length + 1));
    void* const data = memory_.back().get();
    std::memset(data, 1, length + 1);
    const std::uint64_t attributes = way == 0   ? 0
                                     : way == 1 ? UCP_AM_RECV_ATTR_FLAG_DATA
                                                : UCP_AM_RECV_ATTR_FLAG_RNDV;
    if (channel_->accept(kind, *read, data, length, attributes) != UCS_INPROGRESS) return;
    require(way != 0, "only what UCX lends is kept");
    lent_[data] = true;
  }

  void finish_fetch() {
    if (finished_ == played().fetches.size()) return;
    const auto fetch = played().fetches[finished_++];
    const bool is_well = input_.below(8) != 0;
    if (is_well && !is_gone(fetch)) std::memset(fetch.into, 2, fetch.bytes);
    int request = 0;
    fetch.callback(&request, is_well ? UCS_OK : UCS_ERR_CONNECTION_RESET, fetch.bytes,
                   fetch.user_data);
  }

  static bool is_gone(const test::FakeUcx::Fetch& fetch) { return fetch.into == nullptr; }

  Input& input_;
  ucx::SharedState shared_{test::fake_library(), 0, 2};
  std::unique_ptr<ucx::UcxChannel> channel_;
  std::vector<AlignedMemory> memory_;
  std::map<void*, bool> lent_;
  std::vector<std::byte> place_ = std::vector<std::byte>(kSegmentBytes);
  std::vector<std::byte> data_ = std::vector<std::byte>(kSegmentBytes);
  std::size_t finished_ = 0;
  bool is_viewing_ = false;
  bool is_receiving_ = false;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input input(data, size);
  Script(input).play();
  return 0;
}
