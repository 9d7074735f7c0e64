// decode_png with libpng.
//
// The library reports an error by a function that must not return. It jumps back to the last
// setjmp, so the functions with setjmp have no objects with destructors.
#include <fmt/format.h>
#include <png.h>

#include <csetjmp>
#include <cstdio>
#include <cstring>

#include "train/data/dataset.h"
#include "train/data/image/decoders.h"
#include "train/data/inflater.h"

namespace kolo::train {
namespace {

class PngReader {
 public:
  explicit PngReader(std::span<const std::uint8_t> bytes) : rest_(bytes) {
    library_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, this, fail, ignore);
    if (library_ != nullptr) info_ = png_create_info_struct(library_);
  }
  ~PngReader() { png_destroy_read_struct(&library_, &info_, nullptr); }
  PngReader(const PngReader&) = delete;
  PngReader& operator=(const PngReader&) = delete;

  // Both return false on an error, whose text is in reason().
  bool read_header() {
    if (info_ == nullptr) return false;
    if (setjmp(png_jmpbuf(library_)) != 0) return false;
    png_set_read_fn(library_, this, read);
    png_read_info(library_, info_);
    height_ = png_get_image_height(library_, info_);
    width_ = png_get_image_width(library_, info_);
    packed_bytes_ = height_ * static_cast<std::int64_t>(png_get_rowbytes(library_, info_));
    png_set_expand(library_);  // palettes, grey of less than 8 bits
    png_set_strip_16(library_);
    png_set_strip_alpha(library_);
    png_set_gray_to_rgb(library_);
    png_set_interlace_handling(library_);
    png_read_update_info(library_, info_);
    return true;
  }
  bool read_pixels(png_bytepp rows) {
    if (setjmp(png_jmpbuf(library_)) != 0) return false;
    if (png_get_rowbytes(library_, info_) != static_cast<std::size_t>(3 * width_))
      png_error(library_, "its rows cannot be converted to RGB");
    png_read_image(library_, rows);
    png_read_end(library_, nullptr);
    return true;
  }

  std::int64_t height() const { return height_; }
  std::int64_t width() const { return width_; }
  std::int64_t packed_bytes() const { return packed_bytes_; }
  const char* reason() const { return reason_; }

 private:
  [[noreturn]] static void fail(png_structp library, png_const_charp text) {
    auto& self = *static_cast<PngReader*>(png_get_error_ptr(library));
    std::snprintf(self.reason_, sizeof self.reason_, "%s", text);
    png_longjmp(library, 1);
  }
  static void ignore(png_structp, png_const_charp) {}  // warnings concern other chunks than pixels
  static void read(png_structp library, png_bytep to, std::size_t count) {
    auto& self = *static_cast<PngReader*>(png_get_io_ptr(library));
    if (count > self.rest_.size()) png_error(library, "the file ends too early");
    std::memcpy(to, self.rest_.data(), count);
    self.rest_ = self.rest_.subspan(count);
  }

  std::span<const std::uint8_t> rest_;
  png_structp library_ = nullptr;
  png_infop info_ = nullptr;
  std::int64_t height_ = 0, width_ = 0, packed_bytes_ = 0;
  char reason_[200] = "out of memory";
};

}  // namespace

Image decode_png(std::span<const std::uint8_t> bytes, const std::string& name) {
  PngReader reader(bytes);
  const auto refuse = [&](const std::string& reason) {
    throw DataError(fmt::format("'{}' is damaged: it cannot be decoded as PNG: {}", name, reason));
  };
  if (!reader.read_header()) refuse(reader.reason());
  if (reader.packed_bytes() / kLargestCompression > static_cast<std::int64_t>(bytes.size())) {
    refuse(fmt::format("{} x {} pixels are more than a file of {} bytes can contain",
                       reader.width(), reader.height(), bytes.size()));
  }
  Image image = blank_image(reader.height(), reader.width(), name);
  std::vector<png_bytep> rows;
  for (int y = 0; y < image.height; ++y)
    rows.push_back(image.pixels.data() + std::ptrdiff_t{3} * y * image.width);
  if (!reader.read_pixels(rows.data())) refuse(reader.reason());
  return image;
}

}  // namespace kolo::train
