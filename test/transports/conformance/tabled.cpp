#include "test/transports/conformance/tabled.h"

#include <cstring>
#include <map>
#include <string>

#include "transports/error.h"
#include "transports/registry.h"

// What the table's functions are handed back: a C++ transport and its channels.
struct kolo_channel {
  kolo::Channel* channel = nullptr;
};

struct kolo_transport {
  std::unique_ptr<kolo::Transport> transport;
  std::map<int, kolo_channel> channels;
};

namespace kolo::test {

namespace {

// The store below a table: what the C++ transport needs of it, apart from what kolo itself keeps
// there for the transport above.
class StoreBelow final : public Store {
 public:
  explicit StoreBelow(const kolo_store* store) : store_(store) {}

  void set(std::string_view key, std::string_view value) override {
    kolo_error error = fresh();
    done(store_->set(store_, key_of(key).c_str(), value.data(), value.size(), &error), error);
  }
  std::optional<std::string> try_get(std::string_view key) override {
    kolo_error error = fresh();
    std::string value(kRoom, '\0');
    std::size_t bytes = 0;
    const auto status =
        store_->try_get(store_, key_of(key).c_str(), value.data(), value.size(), &bytes, &error);
    if (!done(status, error)) return std::nullopt;
    value.resize(bytes);
    return value;
  }
  std::string get(std::string_view key, Deadline deadline) override {
    kolo_error error = fresh();
    std::string value(kRoom, '\0');
    std::size_t bytes = 0;
    const std::chrono::nanoseconds time = deadline.time_since_epoch();
    done(store_->get(store_, key_of(key).c_str(), time.count(), value.data(), value.size(), &bytes,
                     &error),
         error);
    value.resize(bytes);
    return value;
  }
  std::optional<std::string> failure() override {
    kolo_error error = fresh();
    if (store_->check(store_, &error) == KOLO_DONE) return std::nullopt;
    return error.text;
  }
  std::int64_t add(std::string_view, std::int64_t) override { return 0; }
  void join(int, std::string_view) override {}
  void leave() override {}
  std::string post_failure(std::string_view text) override { return std::string(text); }
  int descriptor() const override { return store_->descriptor(store_); }

 private:
  static constexpr std::size_t kRoom = 4096;

  static std::string key_of(std::string_view key) { return "own/" + std::string(key); }

  static kolo_error fresh() {
    kolo_error error{};
    error.size = sizeof error;
    return error;
  }
  static bool done(kolo_status status, const kolo_error& error) {
    if (status == KOLO_FAILED)
      throw Error(static_cast<ErrorCode>(error.code), error.peer, error.text);
    return status == KOLO_DONE;
  }

  const kolo_store* const store_;
};

// Nothing is thrown through the table.
template <typename Body>
kolo_status told(kolo_error* error, const Body& body) {
  try {
    return body() ? KOLO_DONE : KOLO_NOT_NOW;
  } catch (const Error& thrown) {
    error->code = static_cast<std::int32_t>(thrown.code());
    error->peer = thrown.peer();
    std::strncpy(error->text, thrown.what(), sizeof error->text - 1);
  }
  return KOLO_FAILED;
}

std::span<const std::byte> span_of(const void* data, std::size_t bytes) {
  return {static_cast<const std::byte*>(data), bytes};
}

void tell_capabilities(kolo_channel* channel, kolo_capabilities* told_of) {
  const Capabilities& can = channel->channel->capabilities();
  told_of->memory_kinds = can.memory_kinds;
  told_of->segment_memory = static_cast<std::uint32_t>(can.segment_memory);
  told_of->segment_bytes = can.segment_bytes;
  told_of->preferred_segment_bytes = can.preferred_segment_bytes;
  told_of->shortest_segment_bytes = can.shortest_segment_bytes;
  told_of->zero_copy_bytes = can.zero_copy_bytes;
  told_of->credit_segments = can.credit_segments;
  told_of->latency_us = can.latency_us;
  told_of->bandwidth_GBps = can.bandwidth_GBps;
  told_of->straight_segment_bytes = can.straight_segment_bytes;
}

void add_life(kolo_plugin& table) {
  table.destroy = [](kolo_transport* transport) { std::unique_ptr<kolo_transport>{transport}; };
  table.channel = [](kolo_transport* transport, int peer) { return &transport->channels[peer]; };
  table.progress = [](kolo_transport* transport, kolo_error* error) {
    return told(error, [&] { return transport->transport->progress(), true; });
  };
  table.quiesce = [](kolo_transport* transport) { transport->transport->quiesce(); };
  table.descriptor = [](kolo_transport* transport) { return transport->transport->descriptor(); };
  table.arm = [](kolo_transport* transport, kolo_error* error) {
    return told(error, [&] { return transport->transport->arm(); });
  };
  table.disarm = [](kolo_transport* transport) { transport->transport->disarm(); };
}

void add_out(kolo_plugin& table) {
  table.capabilities = tell_capabilities;
  table.send = [](kolo_channel* channel, const void* data, std::size_t bytes, unsigned flags,
                  kolo_error* error) {
    return told(error, [&] { return channel->channel->send(span_of(data, bytes), flags); });
  };
  table.reserve = [](kolo_channel* channel, std::size_t bytes, void** slot, kolo_error* error) {
    return told(error, [&] { return (*slot = channel->channel->reserve(bytes)) != nullptr; });
  };
  table.commit = [](kolo_channel* channel, unsigned flags, kolo_error* error) {
    return told(error, [&] { return channel->channel->commit(flags), true; });
  };
  table.is_drained = [](kolo_channel* channel, kolo_error* error) {
    return told(error, [&] { return channel->channel->is_drained(); });
  };
}

void add_in(kolo_plugin& table) {
  table.receive = [](kolo_channel* channel, void* into, std::size_t bytes, unsigned flags,
                     kolo_error* error) {
    return told(error, [&] {
      return channel->channel->receive({static_cast<std::byte*>(into), bytes}, flags);
    });
  };
  table.view = [](kolo_channel* channel, std::size_t bytes, const void** segment,
                  kolo_error* error) {
    return told(error, [&] { return (*segment = channel->channel->view(bytes)) != nullptr; });
  };
  table.release = [](kolo_channel* channel, kolo_error* error) {
    return told(error, [&] { return channel->channel->release(), true; });
  };
  table.is_connected = [](kolo_channel* channel, const char** why_not) {
    *why_not = "";
    return channel->channel->is_connected() ? KOLO_DONE : KOLO_NOT_NOW;
  };
  table.counts = [](kolo_channel* channel, kolo_counts* counts) {
    counts->system_calls = channel->channel->statistics().system_calls;
    counts->connections = channel->channel->statistics().connections;
  };
}

void add_answers(kolo_plugin& table) {
  table.view_to_answer = [](kolo_channel* channel, std::size_t bytes, void** segment,
                            kolo_error* error) {
    return told(error,
                [&] { return (*segment = channel->channel->view_to_answer(bytes)) != nullptr; });
  };
  table.answer = [](kolo_channel* channel, kolo_error* error) {
    return told(error, [&] { return channel->channel->answer(), true; });
  };
  table.view_answer = [](kolo_channel* channel, std::size_t bytes, const void** segment,
                         kolo_error* error) {
    return told(error,
                [&] { return (*segment = channel->channel->view_answer(bytes)) != nullptr; });
  };
  table.release_answer = [](kolo_channel* channel, kolo_error* error) {
    return told(error, [&] { return channel->channel->release_answer(), true; });
  };
}

void add_memory(kolo_plugin& table) {
  using Memory = std::shared_ptr<std::byte[]>;
  table.allocate = [](kolo_transport* transport, std::size_t bytes, void** memory, void** owner,
                      kolo_error* error) {
    return told(error, [&] {
      auto held = std::make_unique<Memory>(transport->transport->allocate(bytes));
      *memory = held->get();
      *owner = held.release();
      return true;
    });
  };
  table.free_memory = [](void* owner) { std::unique_ptr<Memory>{static_cast<Memory*>(owner)}; };
}

}  // namespace

kolo_plugin own_table(const char* name, bool can_answer) {
  kolo_plugin table{};
  table.version = KOLO_PLUGIN_VERSION;
  table.size = sizeof table;
  table.name = name;
  table.reach = KOLO_NETWORK;
  add_life(table);
  add_out(table);
  add_in(table);
  if (can_answer) add_answers(table);
  add_memory(table);
  return table;
}

kolo_status make_own(const char* own, const kolo_plugin_request* told_request,
                     kolo_transport** made, kolo_error* error) {
  return told(error, [&] {
    if (*told_request->options != '\0')
      throw Error(ErrorCode::kUnavailable, kNoPeer,
                  "it has no options, leave out the ? and the rest");
    TransportRequest request;
    request.rank = told_request->rank;
    request.size = told_request->ranks;
    request.store = std::make_shared<StoreBelow>(told_request->store);
    request.deadline = Deadline(std::chrono::nanoseconds(told_request->deadline_ns));
    request.segment_bytes = told_request->segment_bytes;
    request.local_ranks = told_request->local_ranks;
    request.host_id = told_request->host_id;
    auto transport = std::make_unique<kolo_transport>();
    transport->transport = make_transport(own, request);
    for (int peer = 0; peer < request.size; ++peer) {
      if (peer != request.rank)
        transport->channels[peer].channel = &transport->transport->channel(peer);
    }
    *made = transport.release();
    return true;
  });
}

}  // namespace kolo::test
