// Log of records in a file that several processes share: the format of the file store.
//
//     file    = header record*
//     header  = 4096 bytes: magic, u64 id, u64 begin, u32 length of the failure, the failure
//     record  = u32 kind, u32 length of the key, u32 length of the value, i64 number, key, value
//     (little-endian)
//
// Writers append under a lock, which the caller holds. Readers need none. The job's failure has its
// own room in the header, so a full disk cannot hide it.
//
// Most records are obsolete some time later. A writer then appends a copy of all that still counts,
// sets `begin` to it, and frees the space before it (where the file system can punch holes).
// Readers start again at `begin`. A reader compares `begin` before and after it reads, since freed
// space reads as zeros.
#pragma once

#include <sys/types.h>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "transports/posix/descriptor.h"

namespace kolo::inline v0 {

class FileLog {
 public:
  enum class Kind : std::uint32_t { kValue = 1, kCounter, kJoin, kLeave, kRetire, kLast = kRetire };
  struct Record {
    Kind kind = Kind::kValue;
    std::string key;
    std::string value;
    std::int64_t number = 0;
  };
  static constexpr std::uint32_t kLongest = 1 << 20;  // key or value

  explicit FileLog(std::string path) : path_(std::move(path)) {}

  // Opens the file, and creates it if necessary.
  void open();
  const posix::Descriptor& file() const { return file_; }

  // Whether the open file is no longer the one at the path.
  bool is_replaced() const;
  // Error kUnavailable if the file is neither empty nor a log.
  void require_log() const;

  // The calls below need the lock.

  // Empties the file and writes a header with a new id. Removes the file if it cannot be written.
  void start_afresh();
  // Removes the file from its path, unless another file is there now.
  void remove() const noexcept;
  // Appends a record. All records must have been read.
  void append(const Record& record);
  // Writes the failure, without asking the disk for more space. Cuts it to the room in the header.
  void write_failure(std::string_view text);
  // Replaces all records by these.
  void replace(const std::vector<Record>& records);

  // Bytes of the records read so far since the last replace().
  std::size_t bytes() const { return end_ - begin_; }

  // Reads the new records, without the lock. `restart` is called before the first one after a
  // replace(): all earlier records are obsolete.
  void read(const std::function<void()>& restart, const std::function<void(Record)>& apply);

  // As of the last read().
  const std::optional<std::string>& failure() const { return failure_; }
  // Identifies one use of the file by a job, in hexadecimal.
  std::string id() const;

 private:
  struct Header {
    std::uint64_t id = 0;
    std::uint64_t begin = 0;
    std::uint32_t failure_bytes = 0;
  };

  Header read_header() const;
  std::optional<std::string> read_failure(std::uint32_t bytes) const;
  std::string read_bytes(std::size_t at, std::size_t bytes) const;
  void write_bytes(std::string_view bytes, std::size_t at);
  static bool parse(std::string_view bytes, std::vector<Record>& records, std::size_t& length);

  std::string path_;
  posix::Descriptor file_;
  std::uint64_t id_ = 0;
  std::size_t begin_ = 0;  // of the records that count
  std::size_t end_ = 0;    // of the records read so far
  std::optional<std::string> failure_;
};

}  // namespace kolo::inline v0
