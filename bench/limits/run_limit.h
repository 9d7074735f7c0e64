// The machine's limit of a row, measured in turn with its libraries: floors (limits.h) at one size,
// or on device memory the copies of device/copy_limit.h.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "bench/cli/arguments.h"
#include "bench/device/memory.h"
#include "bench/limits/limits.h"
#include "bench/measure/buffer.h"
#include "transports/rendezvous.h"

namespace kolo::bench {

class RunLimit {
 public:
  // `transport` is kolo's. `pages` are those of the libraries' buffers. `store` is shared by all
  // ranks; rank 0 measures a floor while the others sleep in the store. `device` is the device of
  // the buffers; null: host memory.
  RunLimit(const Arguments& arguments, int rank, std::string transport,
           std::shared_ptr<Store> store, Pages pages = Pages::kOwn,
           std::shared_ptr<DeviceMemory> device = {});

  // Collective, once in each pass. Returns microseconds at rank 0; none at the others, or if no
  // floor is known or there is no memory for it.
  //
  // Known are the floors of has_floor (limits.h) over shm and tcp, on two or more cores, without an
  // emulated network between the ranks. All ranks must agree on this. Reductions must be of
  // float32, and in place if kolo-bench has a choice. With more than two ranks over shm, sizes
  // start at 32 KiB. On device memory all ranks must share one device with room for a second copy
  // of their buffers.
  //
  // Error kDeadline at the others if rank 0 gives no sign of life for --timeout.
  std::optional<double> measure(std::size_t bytes);

  // The same for messages between two ranks, in host memory.
  std::optional<double> measure(const MessagesRequest& messages);

 private:
  std::optional<double> in_turn(
      bool is_known, const std::function<std::optional<double>(double seconds)>& measure);
  double seconds() const;
  bool is_known(std::size_t bytes) const;
  bool is_known(const MessagesRequest& messages) const;
  FloorRequest floor_of(std::size_t bytes) const;
  std::optional<double> measure_here(std::size_t bytes, double seconds) const;
  Problem problem_of(std::size_t bytes) const;
  void wait_for_rank_0(const std::string& key);

  const Arguments& arguments_;
  int rank_;
  std::string transport_;
  std::shared_ptr<Store> store_;
  Pages pages_;
  std::shared_ptr<DeviceMemory> device_;
  bool is_like_;
  int turns_ = 0;
};

}  // namespace kolo::bench
