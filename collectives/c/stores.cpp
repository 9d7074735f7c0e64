// Stores of the C interface, and the functions of a caller's own store.
#include <optional>
#include <string>

#include "collectives/c/handles.h"
#include "transports/bootstrap.h"

namespace kolo::inline v0::c_interface {

namespace {

// Calls `free` of the caller's functions when the store ends.
struct Context {
  explicit Context(const kolo_store_functions& given) : functions(given) {}
  ~Context() {
    if (is_owned && functions.free != nullptr) functions.free(functions.context);
  }
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  kolo_store_functions functions;
  bool is_owned = false;
};

KeyValueFunctions key_value_functions(const std::shared_ptr<Context>& context) {
  KeyValueFunctions made;
  made.set = [context](std::string_view key, std::string_view value) {
    const InCallback in_callback;
    const auto& functions = context->functions;
    const std::string name(key);
    expect_success(functions.set(functions.context, name.c_str(), value.data(), value.size()),
                   "set", key);
  };
  made.get = [context](std::string_view key) {
    const InCallback in_callback;
    const auto& functions = context->functions;
    const std::string name(key);
    std::optional<std::string> value;
    int found = 0;
    const auto take = [](void* taker, const void* data, std::size_t bytes) {
      static_cast<std::optional<std::string>*>(taker)->emplace(static_cast<const char*>(data),
                                                               bytes);
    };
    expect_success(functions.get(functions.context, name.c_str(), &found, take, &value), "get",
                   key);
    if (found == 0) value.reset();
    return value;
  };
  made.add = [context](std::string_view key, std::int64_t delta) {
    const InCallback in_callback;
    const auto& functions = context->functions;
    std::int64_t sum = 0;
    const std::string name(key);
    expect_success(functions.add(functions.context, name.c_str(), delta, &sum), "add", key);
    return sum;
  };
  if (context->functions.remove != nullptr) {
    made.remove = [context](std::string_view key) {
      const InCallback in_callback;
      const auto& functions = context->functions;
      const std::string name(key);
      expect_success(functions.remove(functions.context, name.c_str()), "remove", key);
    };
  }
  if (context->functions.name != nullptr) made.name = context->functions.name;
  return made;
}

}  // namespace

}  // namespace kolo::inline v0::c_interface

struct kolo_store_server {
  kolo_store_server(const std::string& host, std::uint16_t port, int size)
      : server(host, port, size) {}

  kolo::TcpStoreServer server;
};

using namespace kolo::c_interface;

kolo_result kolo_store_local(kolo_job_store** made) {
  return guarded(nullptr, [&] {
    prepare(made, "made");
    make(made, kolo::make_local_store());
  });
}

kolo_result kolo_store_open_file(const char* path, int size, int64_t timeout_ms,
                                 kolo_job_store** made) {
  return guarded(nullptr, [&] {
    prepare(made, "made");
    if (path == nullptr) refuse("the path of the store is null");
    make(made, kolo::open_file_store(path, size, deadline_in(timeout_ms)));
  });
}

kolo_result kolo_store_connect(const char* host, uint16_t port, int64_t timeout_ms,
                               kolo_job_store** made) {
  return guarded(nullptr, [&] {
    prepare(made, "made");
    if (host == nullptr) refuse("the host of the store is null");
    make(made, kolo::connect_tcp_store(host, port, deadline_in(timeout_ms)));
  });
}

kolo_result kolo_store_from_functions(const kolo_store_functions* functions,
                                      kolo_job_store** made) {
  return guarded(nullptr, [&] {
    prepare(made, "made");
    if (functions == nullptr) refuse("the functions of the store are null");
    const auto fields = fields_of(functions, "kolo_store_functions");
    if (fields.set == nullptr || fields.get == nullptr || fields.add == nullptr)
      refuse("kolo_store_functions needs set, get and add");
    const auto context = std::make_shared<Context>(fields);
    make(made, kolo::make_store(key_value_functions(context)));
    context->is_owned = true;
  });
}

void kolo_store_free(kolo_job_store* store) { end(store); }

kolo_result kolo_serve_store(const char* host, uint16_t port, int size, kolo_store_server** made) {
  return guarded(nullptr, [&] {
    prepare(made, "made");
    make(made, std::string(text_of(host)), port, size);
  });
}

uint16_t kolo_store_server_port(const kolo_store_server* server) {
  return server == nullptr ? uint16_t{0} : server->server.port();
}

void kolo_store_server_free(kolo_store_server* server) { end(server); }
