// Stores, through which the ranks of a job meet.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include "collectives/python/src/module.h"
#include "transports/bootstrap.h"
#include "transports/rendezvous.h"

namespace kolo::python {

namespace {

using namespace nb::literals;
using SharedStore = std::shared_ptr<Store>;

Deadline deadline_in(double timeout) {
  return Clock::now() + milliseconds_of(std::chrono::duration<double>(timeout));
}

SharedStore open_file(const std::string& path, int size, double timeout) {
  const Deadline deadline = deadline_in(timeout);
  const nb::gil_scoped_release no_gil;
  return open_file_store(path, size, deadline);
}

// Connects in short tries, so that KeyboardInterrupt ends it.
SharedStore connect(const std::string& host, std::uint16_t port, double timeout, int server) {
  constexpr std::chrono::seconds kTry{1};
  const Deadline deadline = deadline_in(timeout);
  for (;;) {
    const Deadline until = std::min(deadline, Clock::now() + kTry);
    try {
      const nb::gil_scoped_release no_gil;
      return connect_tcp_store(host, port, until, server);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kDeadline || Clock::now() >= deadline) throw;
    }
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
  }
}

nb::bytes bytes_of(std::string_view text) { return nb::bytes(text.data(), text.size()); }

SharedStore of_functions(nb::object set, nb::object get, nb::object add, nb::object remove,
                         const std::string& name) {
  KeyValueFunctions functions;
  functions.name = name;
  functions.set = [held = make_function(std::move(set))](std::string_view key,
                                                         std::string_view value) {
    call_python([&] { (*held)(nb::str(key.data(), key.size()), bytes_of(value)); });
  };
  functions.get = [held = make_function(std::move(get))](std::string_view key) {
    std::optional<std::string> value;
    call_python([&] {
      const nb::object found = (*held)(nb::str(key.data(), key.size()));
      if (found.is_none()) return;
      const auto bytes = nb::cast<nb::bytes>(found);
      value.emplace(bytes.c_str(), bytes.size());
    });
    return value;
  };
  functions.add = [held = make_function(std::move(add))](std::string_view key, std::int64_t delta) {
    std::int64_t sum = 0;
    call_python(
        [&] { sum = nb::cast<std::int64_t>((*held)(nb::str(key.data(), key.size()), delta)); });
    return sum;
  };
  if (!remove.is_none()) {
    functions.remove = [held = make_function(std::move(remove))](std::string_view key) {
      call_python([&] { (*held)(nb::str(key.data(), key.size())); });
    };
  }
  return make_store(std::move(functions));
}

SharedStore by_all_gather(int rank, int size, nb::object all_gather, double timeout) {
  const Function function = make_function(std::move(all_gather));
  const auto gather = [&](std::span<const std::byte> mine, std::span<std::byte> all) {
    call_python([&] {
      const nb::object gathered = (*function)(nb::bytes(mine.data(), mine.size()));
      std::size_t filled = 0;
      for (const nb::handle one : gathered) {
        const auto bytes = nb::cast<nb::bytes>(one);
        if (bytes.size() != mine.size() || filled + bytes.size() > all.size())
          throw nb::value_error("all_gather must return one bytes of equal length per rank");
        std::memcpy(all.data() + filled, bytes.data(), bytes.size());
        filled += bytes.size();
      }
      if (filled != all.size())
        throw nb::value_error("all_gather must return one bytes of equal length per rank");
    });
  };
  const Deadline deadline = deadline_in(timeout);
  const nb::gil_scoped_release no_gil;
  return store_by_all_gather(rank, size, gather, deadline);
}

// The server's destructor waits for the ranks, and its thread needs no GIL.
struct Server {
  Server(const std::string& host, std::uint16_t port, int size)
      : server(std::make_unique<TcpStoreServer>(host, port, size)) {}
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  ~Server() { close(); }
  void close() {
    const nb::gil_scoped_release no_gil;
    server.reset();
  }
  std::unique_ptr<TcpStoreServer> server;
};

}  // namespace

void bind_stores(nb::module_& module) {
  const nb::class_<Store> store(module, "Store",
                                "A small table that the ranks of a job share, to meet.");
  module.def("open_file_store", open_file, "path"_a, "size"_a, "timeout"_a);
  module.def("connect_tcp_store", connect, "host"_a, "port"_a, "timeout"_a, "server"_a);
  module.def("make_local_store", make_local_store);
  module.def("store_of_functions", of_functions, "set"_a, "get"_a, "add"_a, "remove"_a.none(),
             "name"_a);
  module.def("store_by_all_gather", by_all_gather, "rank"_a, "size"_a, "all_gather"_a, "timeout"_a);
  nb::class_<Server>(module, "TcpStoreServer")
      .def(nb::init<const std::string&, std::uint16_t, int>(), "host"_a, "port"_a, "size"_a)
      .def("port", [](const Server& self) { return self.server ? self.server->port() : 0; })
      .def("close", &Server::close);
}

}  // namespace kolo::python
