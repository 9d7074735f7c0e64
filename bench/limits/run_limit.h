// What the machine allows for a row, measured in turn with its libraries: the floors of limits/ at
// one size, or, on a device's memory, the copies of device/copies.h.
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
  // `transport`: kolo's. `pages`: those of the libraries' buffers. `store`: all ranks'; a floor is
  // measured by rank 0 while the others are asleep in it. `device`: where the buffers are; null:
  // the host's memory.
  RunLimit(const Arguments& arguments, int rank, std::string transport,
           std::shared_ptr<Store> store, Pages pages = Pages::kOwn,
           std::shared_ptr<DeviceMemory> device = {});

  // Collective, once in each pass. Microseconds, at rank 0; nothing at the others, and where no
  // floor is known or the memory for it is lacking: known are those of has_floor (limits/limits.h)
  // over shm and tcp, on two cores or more, without a network between the ranks (which all ranks
  // have to know); of reductions those of float32, and in place where kolo-bench has a choice; of
  // more than two ranks over shm those from 32 KiB on. On a device's memory: where all ranks share
  // one device, which has room for as much again as their buffers take. Error kDeadline, at the
  // others, where rank 0 has not said for --timeout that it is at work.
  std::optional<double> measure(std::size_t bytes);

  // The same of messages between two ranks, in the host's memory.
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
