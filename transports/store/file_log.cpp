#include "transports/store/file_log.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <random>
#include <utility>

#include "transports/error.h"

namespace kolo::inline v0 {

namespace {

static_assert(std::endian::native == std::endian::little, "the file holds numbers as they lie");

constexpr std::string_view kMagic = "kolo store 3\n";
constexpr std::size_t kIdAt = 16;
constexpr std::size_t kBeginAt = 24;
constexpr std::size_t kFailureBytesAt = 32;
constexpr std::size_t kFailureAt = 36;
constexpr std::size_t kHeaderBytes = 4096;
constexpr std::size_t kRecordBytes = 20;

template <typename T>
void put(std::string& bytes, std::size_t at, T field) {
  std::memcpy(bytes.data() + at, &field, sizeof field);
}

template <typename T>
T get(std::string_view bytes, std::size_t at) {
  T field{};
  std::memcpy(&field, bytes.data() + at, sizeof field);
  return field;
}

std::string encode(const FileLog::Record& record) {
  std::string bytes(kRecordBytes, '\0');
  put(bytes, 0, static_cast<std::uint32_t>(record.kind));
  put(bytes, 4, static_cast<std::uint32_t>(record.key.size()));
  put(bytes, 8, static_cast<std::uint32_t>(record.value.size()));
  put(bytes, 12, record.number);
  return bytes.append(record.key).append(record.value);
}

}  // namespace

void FileLog::open() {
  file_ =
      posix::Descriptor::not_inherited(::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!file_.is_open()) {
    throw Error(ErrorCode::kUnavailable, kNoPeer,
                fmt::format("cannot open the store's file {}: {}; name one that does not exist, in "
                            "a folder that all ranks can write to",
                            path_, posix::error_text(errno)));
  }
  struct stat status {};
  if (::fstat(file_.get(), &status) != 0) posix::throw_system("fstat " + path_);
  if (S_ISREG(status.st_mode)) return;
  throw Error(
      ErrorCode::kUnavailable, kNoPeer,
      fmt::format("{} is a pipe or a device, which cannot be a store: name a file that does "
                  "not exist, in a folder that all ranks can write to",
                  path_));
}

bool FileLog::is_replaced() const {
  struct stat there {};
  struct stat ours {};
  if (::fstat(file_.get(), &ours) != 0) posix::throw_system("fstat " + path_);
  return ::stat(path_.c_str(), &there) != 0 || there.st_ino != ours.st_ino ||
         there.st_dev != ours.st_dev;
}

void FileLog::require_log() const {
  struct stat status {};
  if (::fstat(file_.get(), &status) != 0) posix::throw_system("fstat " + path_);
  if (status.st_size == 0) return;
  if (read_bytes(0, kMagic.size()) == kMagic && status.st_size >= off_t{kHeaderBytes}) return;
  throw Error(ErrorCode::kUnavailable, kNoPeer,
              fmt::format("{} is not a store of kolo: name a file that does not exist", path_));
}

void FileLog::start_afresh() {
  std::random_device random;
  std::string header(kHeaderBytes, '\0');
  header.replace(0, kMagic.size(), kMagic);
  put(header, kIdAt, std::uint64_t{random()} << 32 | random());
  put(header, kBeginAt, std::uint64_t{kHeaderBytes});
  try {
    if (::ftruncate(file_.get(), 0) != 0) posix::throw_system("ftruncate " + path_);
    write_bytes(header, 0);
  } catch (const Error&) {
    ::unlink(path_.c_str());
    throw;
  }
}

void FileLog::remove() const noexcept {
  try {
    if (!is_replaced()) ::unlink(path_.c_str());
  } catch (const Error&) {  // the file stays; the next job finds it unused
  }
}

void FileLog::append(const Record& record) {
  // Bytes beyond end_ are an incomplete record of a rank that died while writing.
  if (::ftruncate(file_.get(), static_cast<off_t>(end_)) != 0)
    posix::throw_system("ftruncate " + path_);
  write_bytes(encode(record), end_);
}

// The length comes last: a reader sees the whole text, or none.
void FileLog::write_failure(std::string_view text) {
  text = text.substr(0, std::min(text.find('\0'), kHeaderBytes - kFailureAt));
  if (text.empty()) text = "the job has failed, and the rank that reported it gave no reason";
  std::string length(sizeof(std::uint32_t), '\0');
  put(length, 0, static_cast<std::uint32_t>(text.size()));
  write_bytes(text, kFailureAt);
  write_bytes(length, kFailureBytesAt);
}

void FileLog::replace(const std::vector<Record>& records) {
  std::string bytes;
  for (const Record& record : records) bytes += encode(record);
  if (::ftruncate(file_.get(), static_cast<off_t>(end_)) != 0)
    posix::throw_system("ftruncate " + path_);
  write_bytes(bytes, end_);
  std::string begin(sizeof(std::uint64_t), '\0');
  put(begin, 0, std::uint64_t{end_});
  write_bytes(begin, kBeginAt);
  ::fallocate(file_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, off_t{kHeaderBytes},
              static_cast<off_t>(end_ - kHeaderBytes));  // a file system that cannot: it stays
}

void FileLog::read(const std::function<void()>& restart, const std::function<void(Record)>& apply) {
  while (true) {
    const Header header = read_header();
    id_ = header.id;
    if (!failure_ && header.failure_bytes > 0) failure_ = read_failure(header.failure_bytes);
    const bool is_anew = header.begin != begin_;
    const std::size_t from = is_anew ? header.begin : end_;
    struct stat status {};
    if (::fstat(file_.get(), &status) != 0) posix::throw_system("fstat " + path_);
    const auto file_bytes = static_cast<std::size_t>(status.st_size);
    if (file_bytes <= from && !is_anew) return;
    std::vector<Record> records;
    std::size_t length = 0;
    const bool is_log =
        file_bytes <= from || parse(read_bytes(from, file_bytes - from), records, length);
    if (read_header().begin != header.begin) continue;
    if (!is_log) {
      throw Error(ErrorCode::kProtocol, kNoPeer,
                  fmt::format("the store in the file {} is damaged: remove it and start the job "
                              "again",
                              path_));
    }
    if (is_anew) restart();
    for (Record& record : records) apply(std::move(record));
    begin_ = header.begin;
    end_ = from + length;
    return;
  }
}

std::string FileLog::id() const { return fmt::format("{:016x}", id_); }

// The complete records at the front, and their length. False if there is something else.
bool FileLog::parse(std::string_view bytes, std::vector<Record>& records, std::size_t& length) {
  while (bytes.size() - length >= kRecordBytes) {
    const std::string_view rest = bytes.substr(length);
    const auto kind = get<std::uint32_t>(rest, 0);
    const std::size_t key_bytes = get<std::uint32_t>(rest, 4);
    const std::size_t value_bytes = get<std::uint32_t>(rest, 8);
    const bool is_kind = kind >= 1 && kind <= static_cast<std::uint32_t>(Kind::kLast);
    if (!is_kind || key_bytes > kLongest || value_bytes > kLongest) return false;
    const std::size_t total = kRecordBytes + key_bytes + value_bytes;
    if (rest.size() < total) return true;
    records.push_back({static_cast<Kind>(kind), std::string(rest.substr(kRecordBytes, key_bytes)),
                       std::string(rest.substr(kRecordBytes + key_bytes, value_bytes)),
                       get<std::int64_t>(rest, 12)});
    length += total;
  }
  return true;
}

FileLog::Header FileLog::read_header() const {
  std::array<char, kFailureAt> bytes{};
  if (::pread(file_.get(), bytes.data(), bytes.size(), 0) < 0)
    posix::throw_system("cannot read " + path_);
  const std::string_view header(bytes.data(), bytes.size());
  return {get<std::uint64_t>(header, kIdAt), get<std::uint64_t>(header, kBeginAt),
          get<std::uint32_t>(header, kFailureBytesAt)};
}

std::optional<std::string> FileLog::read_failure(std::uint32_t bytes) const {
  return read_bytes(kFailureAt, std::min<std::size_t>(bytes, kHeaderBytes - kFailureAt));
}

std::string FileLog::read_bytes(std::size_t at, std::size_t bytes) const {
  std::string read(bytes, '\0');
  const ssize_t got = ::pread(file_.get(), read.data(), read.size(), static_cast<off_t>(at));
  if (got < 0) posix::throw_system("cannot read " + path_);
  read.resize(static_cast<std::size_t>(got));
  return read;
}

void FileLog::write_bytes(std::string_view bytes, std::size_t at) {
  while (!bytes.empty()) {
    const ssize_t written =
        ::pwrite(file_.get(), bytes.data(), bytes.size(), static_cast<off_t>(at));
    if (written < 0 && errno != EINTR) posix::throw_system("cannot write " + path_);
    if (written <= 0) continue;
    bytes.remove_prefix(static_cast<std::size_t>(written));
    at += static_cast<std::size_t>(written);
  }
}

}  // namespace kolo::inline v0
