#include "test/transports/store/store_table.h"

#include <unistd.h>
#include <atomic>
#include <cstdio>
#include <filesystem>

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

}  // namespace

const std::vector<StoreRow>& store_table() {
  static const std::vector<StoreRow> table = {
      {"local", false, [] { return std::make_unique<LocalJob>(); }},
      {"file", true, [] { return std::make_unique<FileJob>(); }},
      {"tcp over IPv4", true, [] { return std::make_unique<TcpJob>("127.0.0.1"); }},
      {"tcp over IPv6", true, [] { return std::make_unique<TcpJob>("::1"); }},
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
