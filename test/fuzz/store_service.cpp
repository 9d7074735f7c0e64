// Fuzzer of the TCP store's server: messages of clients in any order, cut anywhere.
#include <cstdint>
#include <set>
#include <string>

#include "test/fuzz/input.h"
#include "test/fuzz/store_messages.h"
#include "transports/store/service.h"

using namespace kolo;
using namespace kolo::fuzz;

namespace {

// Clients that come and go, and receive only their own answers.
class Room {
 public:
  void act(Input& input) {
    const unsigned client = input.below(kClients);
    if (there_.insert(client).second) service_.add(client);
    switch (input.below(8)) {
      case 0:
        return remove(client, "has ended");
      case 1:
        return say(
            client,
            store_wire::encode(
                {store_wire::Kind::kHello, 1, store_wire::kVersion, {}, input.short_text()}));
      default:
        return say(client, speech_of(input, 0));
    }
  }

  void clear() {
    while (!there_.empty()) remove(*there_.begin(), "has ended");
    require(!service_.is_needed(), "a store without clients is not needed");
  }

 private:
  static constexpr unsigned kClients = 6;

  // In two parts: the cut must not matter.
  void say(unsigned client, std::string_view speech) {
    const auto half = speech.size() / 2;
    if (!hear(client, speech.substr(0, half))) return;
    hear(client, speech.substr(half));
  }

  bool hear(unsigned client, std::string_view bytes) {
    const char* const why = service_.hear(client, bytes);
    if (why != nullptr) remove(client, why);
    return why == nullptr;
  }

  void remove(unsigned client, const char* how) {
    there_.erase(client);
    service_.remove(client, how);
  }

  void check_reply(std::uint64_t client, const store_wire::Message& message) const {
    require(there_.count(static_cast<unsigned>(client)) == 1,
            "a client that is gone gets no message");
    require(!service_.is_unknown(client), "an unknown client gets no message");
    std::string bytes = store_wire::encode(message);
    const auto back = store_wire::take(bytes);
    require(back && back->value == message.value && bytes.empty(), "a reply is one message");
  }

  std::set<unsigned> there_;
  StoreService service_{[this](std::uint64_t client, const store_wire::Message& message) {
    check_reply(client, message);
  }};
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input input(data, size);
  Room room;
  while (!input.is_empty()) room.act(input);
  room.clear();
  return 0;
}
