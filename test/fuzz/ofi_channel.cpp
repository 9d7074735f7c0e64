// Fuzzer of the ofi channel over a fake libfabric, which delivers any messages with any immediate
// data and whose sends may fail. Received data are in order, or an error. The rank sends no more
// than the peer has room for. Memory given to libfabric does not change until it is sent.
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "test/fuzz/input.h"
#include "test/transports/ofi/fake_libfabric.h"
#include "transports/base/liveness.h"
#include "transports/base/preposted_receives.h"
#include "transports/error.h"
#include "transports/ofi/bootstrap.h"
#include "transports/ofi/channel.h"
#include "transports/ofi/tag.h"
#include "transports/ofi/transport.h"
#include "transports/posix/event.h"

using namespace kolo;
using namespace kolo::fuzz;
using test::fake_fabric;

namespace {

// Longer than the segments that are received into buffers and copied, and than those that rxm sends
// without rendezvous.
constexpr std::size_t kSegmentBytes = 20480;
constexpr std::uint32_t kToken = 5;  // the peer's token
constexpr std::size_t kNoWindows[] = {0, ofi::kSlots - 1, ofi::kLongestWindow + 1};
constexpr int kErrors[] = {5, 11, 104, 107, 126};
constexpr std::size_t kLengths[] = {0, 1, 8, 64, 65, 4096, 4097, 16385, kSegmentBytes};

class Script {
 public:
  explicit Script(Input& input) : input_(input), liveness_(1, 2) {
    fake_fabric() = {};
    const unsigned kind = input_.below(4);
    fake_fabric().provider = kind == 0 ? "sockets" : "tcp;ofi_rxm";
    const bool has_early_word = kind == 1 || kind == 2;
    if (has_early_word) {
      const auto kind_of_word = static_cast<ofi::MessageKind>(input_.below(16));
      fake_fabric().early_words.push_back(some_word(kind_of_word, false));
    }
    fake_fabric().refusals = kind == 2 ? 1 : 0;
    const auto store = make_local_store();
    ofi::EndpointAddress address;
    address.provider = fake_fabric().provider;
    address.name = "a peer";  // as long as the names of the fake library
    address.segment_bytes = kSegmentBytes;
    constexpr unsigned kWindows = ofi::kLongestWindow - ofi::kSlots + 1;
    const unsigned window = input_.below_or_rare(kWindows, std::size(kNoWindows));
    const bool is_window = window < kWindows;
    address.window = is_window ? ofi::kSlots + window : kNoWindows[window - kWindows];
    address.token = kToken;
    address.process = "another";
    address.liveness = liveness_.address();
    store->set("offer/1", "host\n" + address.provider + "\n " + address.provider + " \n");
    store->set("address/1", ofi::to_text(address));
    store->set("connected/1", "");
    OfiSettings settings;
    settings.provider = address.provider;
    settings.segment_bytes = kSegmentBytes;
    settings.can_sleep = kind == 0 || kind == 2;
    if (settings.can_sleep) fake_fabric().descriptor = event_.descriptor();
    settings.patience = std::chrono::milliseconds(0);
    try {
      transport_ = make_ofi({0, 2, store, Clock::now() + std::chrono::seconds(60), 0, 2}, settings);
      require(is_window, "a window is one that ranks have");
    } catch (const Error& error) {
      require(!is_window && error.code() == ErrorCode::kProtocol,
              "such an address is not an error");
      return;
    }
    const auto own = ofi::address_from_text(*store->try_get("address/0"), 0);
    token_ = own.token;
    window_ = std::min<std::uint64_t>(own.window, address.window);
    liveness_.know({own.liveness, liveness_.address()});
    channel_ = &transport_->channel(1);
    expecting_ = dynamic_cast<PrepostedReceives*>(channel_);
  }

  ~Script() {
    fake_fabric().refuses = 0;
    fake_fabric().queue_error = 0;
    liveness_.close();  // so that no peer is waited for
    transport_.reset();
    require(fake_fabric().receives.empty(), "no receive outlives the transport");
  }
  Script(const Script&) = delete;
  Script& operator=(const Script&) = delete;

  void play() {
    while (transport_ && !input_.is_empty()) {
      try {
        step();
      } catch (const Error& error) {
        const bool may_be_system =
            fake_fabric().queue_error != 0 || fake_fabric().provider == "sockets";
        require(error.code() == ErrorCode::kProtocol || error.code() == ErrorCode::kPeerLost ||
                    (error.code() == ErrorCode::kSystem && may_be_system),
                "an error is the peer's, or a protocol's");
      }
      look_at_sent();
    }
  }

 private:
  void step() {
    switch (input_.below(14)) {
      case 0:
      case 1:
      case 2:
        return bring_segment();
      case 3:
        return bring_word();
      case 4:
        return send();
      case 5:
        return fill_slot();
      case 6:
        return view();
      case 7:
        return receive();
      case 8:
        return expect();
      case 9:
        return finish_send();
      case 10:
        return turn();
      case 11:
        return drain();
      case 12:
        return turn_away();
      default:
        return end();
    }
  }

  // --- actions of the peer ---

  void bring_segment() {
    std::vector<std::byte> data(length(), static_cast<std::byte>(brought_.size()));
    fake_fabric().bring({ofi::data_tag(token_, 1), some_word(ofi::MessageKind::kData, true), data});
    brought_.push_back(data.size());
  }

  void bring_word() {
    const auto kind = static_cast<ofi::MessageKind>(input_.below(16));
    fake_fabric().bring({ofi::control_tag(token_), some_word(kind, false), {}});
  }

  // A segment is recognized by its tag, whatever its immediate data say.
  std::uint64_t some_word(ofi::MessageKind kind, bool is_segment) {
    const unsigned choice = input_.below(16);
    ofi::ImmediateData word{kind, 1, known_taken_ + input_.below(8)};
    if (choice == 0) word.count = input_.number<std::uint64_t>();
    if (choice == 1) word.rank = input_.number<std::uint32_t>();
    const auto bits = ofi::to_bits(word);
    word = ofi::immediate_from_bits(bits);
    if (is_segment || (kind == ofi::MessageKind::kCredit && word.rank == 1))
      said_taken_.push_back(ofi::whole_count(word.count, known_taken_));
    return bits;
  }

  // A count above the number of segments sent by then is not believed.
  void believe() {
    for (const std::uint64_t taken : said_taken_) {
      if (taken <= given_.size()) known_taken_ = std::max(known_taken_, taken);
    }
  }

  void finish_send() {
    auto& sent = fake_fabric().sent;
    for (std::size_t i = 0; i < sent.size(); ++i) {
      if (sent[i].has_left || input_.below(4) == 0) continue;
      require(std::equal(sent[i].data.begin(), sent[i].data.end(), sent[i].place),
              "what is on its way stays as it was");
      const bool is_well = input_.below(16) != 0;
      return fake_fabric().finish(i, is_well ? 0 : kErrors[input_.below(std::size(kErrors))]);
    }
  }

  void turn_away() {
    const unsigned choice = input_.below(16);
    fake_fabric().refuses = choice < 12 ? 0 : kErrors[choice - 12];
    fake_fabric().queue_error = choice == 11 ? kErrors[0] : 0;
  }

  // Ends with a last word, or without one.
  void end() {
    if (input_.below(4) != 0) return;
    is_at_end_ = true;
    if (input_.below(2) == 0) {
      const std::uint64_t word = input_.below(2) == 0 ? left_ : input_.number<std::uint64_t>();
      liveness_.leave_words([word](int) { return word; });
    }
    liveness_.close();
  }

  // --- actions of the rank ---

  std::size_t length() { return kLengths[input_.below(std::size(kLengths))]; }

  void send() {
    data_.emplace_back(length(), static_cast<std::byte>(given_.size()));
    if (channel_->send(data_.back())) given_.push_back(data_.back().size());
  }

  void fill_slot() {
    const std::size_t bytes = length();
    std::byte* const slot = channel_->reserve(bytes);
    if (slot == nullptr) return;
    std::fill(slot, slot + bytes, static_cast<std::byte>(given_.size()));
    given_.push_back(bytes);
    channel_->commit();
  }

  // Checks the sent messages: they leave in the order of the calls.
  void look_at_sent() {
    believe();
    const auto& sent = fake_fabric().sent;
    for (; looked_at_ < sent.size(); ++looked_at_) {
      const auto& each = sent[looked_at_];
      const ofi::ImmediateData word = ofi::immediate_from_bits(each.word);
      require(word.rank == 0, "a message carries the sender's rank");
      if (each.tag == ofi::data_tag(kToken, 0)) {
        require(left_ < given_.size() && each.data.size() == given_[left_],
                "segments leave in their order");
        for (const std::byte byte : each.data)
          require(byte == static_cast<std::byte>(left_), "what leaves is what was given");
        require(++left_ <= known_taken_ + window_, "no more leaves than there is room for");
      }
      if (word.kind == ofi::MessageKind::kData || word.kind == ofi::MessageKind::kCredit)
        require(word.count <= taken_, "credit is for what was taken");
    }
  }

  // As a waiting rank does, if it can sleep.
  void turn() {
    if (transport_->descriptor() < 0) return transport_->progress();
    if (transport_->arm()) transport_->disarm();
  }

  void view() {
    if (places_.contains(taken_)) return;
    const std::size_t bytes = wanted();
    const std::byte* const data = channel_->view(bytes);
    if (data == nullptr) return;
    took({data, bytes});
    require(channel_->view(bytes) == data, "a view stays where it is");
    channel_->release();
  }

  void receive() {
    const std::span<std::byte> into = place_of(taken_);
    if (channel_->receive(into, input_.below(2) == 0 ? kPlain : kCold)) took(into);
  }

  void expect() {
    const std::size_t ahead = input_.below(10);
    const bool is_new = !places_.contains(taken_ + ahead);
    const auto into = place_of(taken_ + ahead);
    if (!expecting_->expect(ahead, into) && is_new) places_.erase(taken_ + ahead);
  }

  // Mostly the length of the next segment.
  std::size_t wanted() {
    return input_.below(16) != 0 && taken_ < brought_.size() ? brought_[taken_] : length();
  }

  std::span<std::byte> place_of(std::uint64_t segment) {
    if (!places_.contains(segment)) {
      const bool is_known = input_.below(16) != 0 && segment < brought_.size();
      memory_.emplace_back(is_known ? brought_[segment] : length());
      places_[segment] = memory_.size() - 1;
    }
    return memory_[places_[segment]];
  }

  void took(std::span<const std::byte> data) {
    require(taken_ < brought_.size() && data.size() == brought_[taken_],
            "what is taken has come, as long as it is");
    for (const std::byte byte : data)
      require(byte == static_cast<std::byte>(taken_), "segments come in their order");
    ++taken_;
  }

  void drain() {
    if (!channel_->is_drained()) return;
    for (const auto& each : fake_fabric().sent)
      require(each.has_left || is_at_end_, "what is drained has left");
  }

  Input& input_;
  PeerLiveness liveness_;  // the peer's
  posix::Event event_;
  std::unique_ptr<Transport> transport_;
  Channel* channel_ = nullptr;
  PrepostedReceives* expecting_ = nullptr;
  std::uint32_t token_ = 0;
  std::uint64_t window_ = 0;
  std::vector<std::size_t> given_;    // lengths; each segment is filled with its own number
  std::vector<std::size_t> brought_;  // the same
  std::vector<std::vector<std::byte>> data_;
  std::vector<std::vector<std::byte>> memory_;
  std::map<std::uint64_t, std::size_t> places_;  // index in memory_, by segment
  std::uint64_t left_ = 0;
  std::uint64_t taken_ = 0;
  std::uint64_t known_taken_ = 0;  // the number of segments the peer has taken, as far as known
  std::vector<std::uint64_t> said_taken_;
  std::size_t looked_at_ = 0;  // number of sent messages that were checked
  bool is_at_end_ = false;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input input(data, size);
  Script(input).play();
  return 0;
}
