// The job's store as a table of functions for an external transport.
#pragma once

#include <memory>

#include "transports/plugin.h"
#include "transports/rendezvous.h"

namespace kolo::inline v0::plugin {

class StoreFunctions {
 public:
  StoreFunctions(std::shared_ptr<Store> store, int rank, int size);
  StoreFunctions(const StoreFunctions&) = delete;
  StoreFunctions& operator=(const StoreFunctions&) = delete;

  // Valid as long as this object.
  const kolo_store* functions() const { return &with_owner_; }

  Store& store() const { return *store_; }
  int rank() const { return rank_; }
  int size() const { return size_; }

  struct WithOwner : kolo_store {
    const StoreFunctions* owner;
  };

 private:
  std::shared_ptr<Store> store_;
  const int rank_;
  const int size_;
  WithOwner with_owner_{};
};

// Both clocks are the same: nanoseconds of CLOCK_MONOTONIC.
std::int64_t nanoseconds(Deadline deadline);

}  // namespace kolo::inline v0::plugin
