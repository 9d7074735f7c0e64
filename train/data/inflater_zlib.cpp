// Inflater with zlib.
#include <zlib.h>

#include <algorithm>
#include <new>
#include <vector>

#include "train/data/inflater.h"

namespace kolo::train {
namespace {

constexpr std::size_t kReadAtOnce = std::size_t{64} << 10;
constexpr std::size_t kInflatedAtOnce = std::size_t{1} << 30;  // below the limit of zlib's counter
constexpr int kGzipWindow = MAX_WBITS + 16;                    // zlib's code for a gzip header

class ZlibInflater final : public Inflater {
 public:
  ZlibInflater(std::istream& file, std::int64_t bytes, Envelope envelope)
      : file_(file), left_(bytes), in_(kReadAtOnce) {
    if (inflateInit2(&stream_, envelope == Envelope::gzip ? kGzipWindow : MAX_WBITS) != Z_OK)
      throw std::bad_alloc();
  }
  ~ZlibInflater() override { inflateEnd(&stream_); }
  ZlibInflater(const ZlibInflater&) = delete;
  ZlibInflater& operator=(const ZlibInflater&) = delete;

  std::size_t read(std::span<std::uint8_t> out) override {
    std::size_t done = 0;
    while (done < out.size() && status_ == Z_OK && refill()) {
      const std::size_t room = std::min(out.size() - done, kInflatedAtOnce);
      stream_.next_out = out.data() + done;
      stream_.avail_out = static_cast<uInt>(room);
      status_ = inflate(&stream_, Z_NO_FLUSH);
      done += room - stream_.avail_out;
    }
    return done;
  }

  std::string fault() const override {
    if (status_ == Z_ERRNO) return "it cannot be read to its end";
    if (status_ == Z_OK || status_ == Z_BUF_ERROR) return "it ends too early";
    if (status_ != Z_STREAM_END) return stream_.msg != nullptr ? stream_.msg : zError(status_);
    return left_ > 0 || stream_.avail_in > 0 ? "extra bytes follow its end" : "";
  }

 private:
  // Reads more of the file if all that was read is used. Returns false if it cannot be read.
  bool refill() {
    if (stream_.avail_in > 0 || left_ == 0) return true;
    file_.read(in_.data(), std::min(left_, static_cast<std::int64_t>(in_.size())));
    if (file_.gcount() == 0) status_ = Z_ERRNO;
    left_ -= file_.gcount();
    stream_.next_in = reinterpret_cast<Bytef*>(in_.data());
    stream_.avail_in = static_cast<uInt>(file_.gcount());
    return status_ == Z_OK;
  }

  std::istream& file_;
  std::int64_t left_;  // bytes of the file that are not read yet
  std::vector<char> in_;
  z_stream stream_{};
  int status_ = Z_OK;  // of zlib; Z_ERRNO: the file could not be read
};

}  // namespace

std::unique_ptr<Inflater> make_inflater(std::istream& file, std::int64_t bytes, Envelope envelope) {
  return std::make_unique<ZlibInflater>(file, bytes, envelope);
}

}  // namespace kolo::train
