#include "test/transports/store/store_table.h"

#include <unistd.h>
#include <atomic>
#include <cstdio>
#include <filesystem>
#include <map>
#include <mutex>

#include "transports/bootstrap.h"

namespace kolo::test {

namespace {

class LocalJob final : public StoreJob {
 public:
  std::shared_ptr<Store> open() override { return store_; }

 private:
  std::shared_ptr<Store> store_ = make_local_store();
};

class FileJob final : public StoreJob {
 public:
  std::shared_ptr<Store> open() override {
    return open_file_store(file_.path(), 4, in_seconds(20));
  }

 private:
  TemporaryFile file_;
};

class TcpJob final : public StoreJob {
 public:
  explicit TcpJob(std::string host) : host_(std::move(host)), server_(host_, 0) {}
  std::shared_ptr<Store> open() override {
    return connect_tcp_store(host_, server_.port(), in_seconds(20));
  }

 private:
  std::string host_;
  TcpStoreServer server_;
};

// A store over functions of the caller, each of which a map of this process serves.
class FunctionsJob final : public StoreJob {
 public:
  std::shared_ptr<Store> open() override {
    KeyValueFunctions functions;
    functions.set = [this](std::string_view key, std::string_view value) {
      const std::lock_guard lock(mutex_);
      values_[std::string(key)] = value;
    };
    functions.get = [this](std::string_view key) -> std::optional<std::string> {
      const std::lock_guard lock(mutex_);
      const auto found = values_.find(std::string(key));
      return found == values_.end() ? std::nullopt : std::optional(found->second);
    };
    functions.add = [this](std::string_view key, std::int64_t delta) {
      const std::lock_guard lock(mutex_);
      auto& counter = counters_[std::string(key)];
      return counter = static_cast<std::int64_t>(static_cast<std::uint64_t>(counter) +
                                                 static_cast<std::uint64_t>(delta));
    };
    functions.remove = [this](std::string_view key) {
      const std::lock_guard lock(mutex_);
      values_.erase(std::string(key));
      counters_.erase(std::string(key));
    };
    functions.name = "the map of the test";
    return make_store(std::move(functions));
  }

 private:
  std::mutex mutex_;
  std::map<std::string, std::string> values_;
  std::map<std::string, std::int64_t> counters_;
};

}  // namespace

const std::vector<StoreRow>& store_table() {
  static const std::vector<StoreRow> table = {
      {"local", false, [] { return std::make_unique<LocalJob>(); }},
      {"file", true, [] { return std::make_unique<FileJob>(); }},
      {"tcp over IPv4", true, [] { return std::make_unique<TcpJob>("127.0.0.1"); }},
      {"tcp over IPv6", true, [] { return std::make_unique<TcpJob>("::1"); }},
      {"functions of the caller", false, [] { return std::make_unique<FunctionsJob>(); }},
  };
  return table;
}

TemporaryFile::TemporaryFile() {
  static std::atomic<int> next{0};
  path_ = (std::filesystem::temp_directory_path() /
           ("kolo-test-" + std::to_string(::getpid()) + "-" + std::to_string(next++)))
              .string();
}

TemporaryFile::~TemporaryFile() { std::remove(path_.c_str()); }

}  // namespace kolo::test
