// Two tcp ranks in one process, with settings of the test.
#pragma once

#include <exception>
#include <memory>
#include <thread>

#include "test/transports/store/store_table.h"
#include "transports/tcp/transport.h"

namespace kolo::test {

struct Pair {
  std::unique_ptr<Transport> a;
  std::unique_ptr<Transport> b;
};

// Makes both ranks by `make_one`, which takes a TransportRequest.
template <typename Make>
Pair make_pair_by(const Make& make_one) {
  const auto store = make_local_store();
  Pair pair;
  const auto make = [&](int rank) {
    return make_one(TransportRequest{rank, 2, store, in_seconds(30), 0, 2});
  };
  std::exception_ptr failure;
  std::thread other([&] {
    try {
      pair.b = make(1);
    } catch (const std::exception& error) {
      store->post_failure(error.what());
      failure = std::current_exception();
    }
  });
  try {
    pair.a = make(0);
  } catch (const std::exception& error) {
    store->post_failure(error.what());
    other.join();
    throw;
  }
  other.join();
  if (failure) std::rethrow_exception(failure);
  return pair;
}

inline Pair make_pair_with(const TcpSettings& settings) {
  return make_pair_by([&](const TransportRequest& request) { return make_tcp(request, settings); });
}

}  // namespace kolo::test
