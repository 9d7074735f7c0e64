// decode_jpeg with libjpeg-turbo.
//
// The library reports an error by a function that must not return. It jumps back to the last
// setjmp, so the functions with setjmp have no objects with destructors.
#include <fmt/format.h>

// jpeglib.h needs these two before it.
#include <cstddef>
#include <cstdio>

#include <jerror.h>
#include <jpeglib.h>

#include <csetjmp>

#include "train/data/dataset.h"
#include "train/data/image/decoders.h"

namespace kolo::train {
namespace {

// Scans of a progressive file: usual files have ten. Each scan costs time for the whole image.
constexpr int kMostScans = 200;
constexpr int kInks = 4;  // cyan, magenta, yellow, black

class JpegReader {
 public:
  JpegReader() {
    library_.err = jpeg_std_error(&errors_);
    library_.client_data = this;
    errors_.error_exit = fail;
    errors_.emit_message = warn;
    progress_.progress_monitor = limit_scans;
  }
  ~JpegReader() {
    if (is_created_) jpeg_destroy_decompress(&library_);
  }
  JpegReader(const JpegReader&) = delete;
  JpegReader& operator=(const JpegReader&) = delete;

  // Both return false on an error, whose text is in reason().
  bool read_header(std::span<const std::uint8_t> bytes) {
    if (setjmp(failed_) != 0) return false;
    jpeg_create_decompress(&library_);
    is_created_ = true;
    library_.progress = &progress_;
    jpeg_mem_src(&library_, bytes.data(), static_cast<unsigned long>(bytes.size()));
    jpeg_read_header(&library_, TRUE);
    has_inks_ = library_.jpeg_color_space == JCS_CMYK || library_.jpeg_color_space == JCS_YCCK;
    library_.out_color_space = has_inks_ ? JCS_CMYK : JCS_RGB;
    return true;
  }
  // `ink_row`: memory for a row of inks, if has_inks().
  bool read_pixels(std::uint8_t* to, std::uint8_t* ink_row) {
    if (setjmp(failed_) != 0) return false;
    jpeg_start_decompress(&library_);
    while (library_.output_scanline < library_.output_height) {
      std::uint8_t* const here =
          to + std::size_t{3} * library_.output_width * library_.output_scanline;
      JSAMPROW row = has_inks_ ? ink_row : here;
      jpeg_read_scanlines(&library_, &row, 1);
      if (has_inks_) convert_inks(ink_row, here);
    }
    jpeg_finish_decompress(&library_);
    return true;
  }

  std::int64_t height() const { return library_.image_height; }
  std::int64_t width() const { return library_.image_width; }
  bool has_inks() const { return has_inks_; }
  const char* reason() const { return reason_; }

 private:
  static JpegReader& of(j_common_ptr library) {
    return *static_cast<JpegReader*>(library->client_data);
  }
  [[noreturn]] static void fail(j_common_ptr library) {
    JpegReader& self = of(library);
    library->err->format_message(library, self.reason_);
    std::longjmp(self.failed_, 1);
  }
  // Called for warnings (level below 0) and traces. The library goes on with grey pixels after
  // damage, so such warnings are errors here. Others are harmless: bytes between segments.
  static void warn(j_common_ptr library, int level) {
    if (level >= 0) return;
    const int code = library->err->msg_code;
    if (code == JWRN_JPEG_EOF || code == JWRN_HIT_MARKER || code == JWRN_HUFF_BAD_CODE)
      fail(library);
  }
  static void limit_scans(j_common_ptr library) {
    JpegReader& self = of(library);
    if (self.library_.input_scan_number <= kMostScans) return;
    std::snprintf(self.reason_, sizeof self.reason_, "more than %d scans", kMostScans);
    std::longjmp(self.failed_, 1);
  }

  // A row of inks to RGB, by Pillow's formula. Adobe's files have inverted inks.
  void convert_inks(const std::uint8_t* from, std::uint8_t* to) const {
    const int inverted = library_.saw_Adobe_marker != 0 ? 0 : 255;
    for (JDIMENSION x = 0; x < library_.output_width; ++x, from += kInks) {
      const int light = inverted ^ from[3];
      for (int ink = 0; ink < 3; ++ink) {
        const int dark = (inverted ^ from[ink] ^ 255) * light + 128;
        *to++ = static_cast<std::uint8_t>(light - (((dark >> 8) + dark) >> 8));
      }
    }
  }

  jpeg_decompress_struct library_{};
  jpeg_error_mgr errors_{};
  jpeg_progress_mgr progress_{};
  std::jmp_buf failed_{};
  char reason_[JMSG_LENGTH_MAX] = "";
  bool is_created_ = false;
  bool has_inks_ = false;
};

}  // namespace

Image decode_jpeg(std::span<const std::uint8_t> bytes, const std::string& name) {
  JpegReader reader;
  const auto refuse = [&] {
    throw DataError(
        fmt::format("'{}' is damaged: it cannot be decoded as JPEG: {}", name, reader.reason()));
  };
  if (!reader.read_header(bytes)) refuse();
  Image image = blank_image(reader.height(), reader.width(), name);
  std::vector<std::uint8_t> ink_row(
      reader.has_inks() ? static_cast<std::size_t>(reader.width() * kInks) : 0);
  if (!reader.read_pixels(image.pixels.data(), ink_row.data())) refuse();
  return image;
}

}  // namespace kolo::train
