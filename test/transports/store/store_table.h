// Table of stores that the store tests run over. Each row makes a job's store and further clients
// of it, one for each rank.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "transports/rendezvous.h"

namespace kolo::test {

// The store of one job; each rank calls open().
class StoreJob {
 public:
  virtual ~StoreJob() = default;
  virtual std::shared_ptr<Store> open() = 0;
};

struct StoreRow {
  std::string name;
  bool sees_death = false;
  std::function<std::unique_ptr<StoreJob>()> make;
};

const std::vector<StoreRow>& store_table();

// A unique name in the temporary directory, removed at the end.
class TemporaryFile {
 public:
  TemporaryFile();
  ~TemporaryFile();
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

inline Deadline in_seconds(double seconds) {
  return Clock::now() +
         std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

}  // namespace kolo::test
