// mnist on small files compressed by gzip, valid and damaged.
#include <zlib.h>

#include <array>
#include <string>

#include "test/support/catch.h"
#include "test/train/data/idx_bytes.h"
#include "test/train/data/mnist_refusal.h"
#include "train/data/mnist.h"

namespace kolo::train {
namespace {

std::string gzipped(const std::string& plain) {
  z_stream stream{};
  REQUIRE(deflateInit2(&stream, 9, Z_DEFLATED, MAX_WBITS + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK);
  std::string out(deflateBound(&stream, plain.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(plain.data()));
  stream.avail_in = static_cast<uInt>(plain.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  REQUIRE(deflate(&stream, Z_FINISH) == Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

// The error for these labels, which are written as they are; the images are valid.
std::string with_labels_file(const std::string& bytes) {
  return mnist_refusal(
      MnistFolder(image_bytes(3), bytes, "train-images-idx3-ubyte", "train-labels-idx1-ubyte.gz"));
}

TEST_CASE("mnist reads compressed files, whatever their names say") {
  const MnistFolder folder(gzipped(image_bytes(300)),
                           gzipped(label_bytes(std::vector<std::uint8_t>(300, 4))),
                           "train-images-idx3-ubyte.gz", "train-labels.idx1-ubyte.gz");
  const auto dataset = open_mnist(folder.text(), Split::train, {});
  REQUIRE(dataset->size() == 300);
  std::array<std::uint8_t, 28 * 28> picture{};
  CHECK(dataset->get(299, picture) == 4);
  CHECK(picture[783] == (27 + 3 * 27 + 7 * 299) % 256);
  CHECK(with_labels_file(gzipped(label_bytes({1, 2, 3}))) == "opened");
  CHECK(with_labels_file(label_bytes({1, 2, 3})) == "opened");  // a plain file
}

TEST_CASE("mnist reports a compressed file that is truncated or has extra bytes") {
  const std::string good = gzipped(label_bytes({1, 2, 3}));
  for (std::size_t size = 2; size < good.size(); ++size) {
    CHECK(with_labels_file(good.substr(0, size)) ==
          "'train-labels-idx1-ubyte.gz' is damaged: it cannot be inflated: it ends too early");
  }
  CHECK(with_labels_file(good + std::string(1, '\0')) ==
        "'train-labels-idx1-ubyte.gz' is damaged: it cannot be inflated: extra bytes follow its "
        "end");
}

TEST_CASE("mnist survives every damaged byte of a compressed file, and verifies its checksum") {
  const std::string good = gzipped(label_bytes({1, 2, 3}));
  constexpr std::size_t kTrailer = 8;  // checksum and length
  for (std::size_t at = 0; at < good.size(); ++at) {
    std::string damaged = good;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    const std::string refusal = with_labels_file(damaged);
    CAPTURE(at, refusal);
    if (at >= good.size() - kTrailer)
      CHECK_THAT(refusal, ContainsSubstring("is damaged: it cannot be inflated: incorrect"));
  }
}

TEST_CASE("mnist reports compressed contents of another length than their header says") {
  CHECK(with_labels_file(gzipped(label_bytes({1, 2, 3}) + "x")) ==
        "'train-labels-idx1-ubyte.gz' is too long: inflated, it has more bytes than expected for "
        "3");
  CHECK(with_labels_file(gzipped(idx_bytes({3}, {1, 2}))) ==
        "'train-labels-idx1-ubyte.gz' is truncated: it ends before the last of 3");
  CHECK(with_labels_file(gzipped("")) ==
        "'train-labels-idx1-ubyte.gz' is truncated: it ends inside its header");
  CHECK_THAT(with_labels_file(gzipped(idx_bytes({0xffffffff}, {1, 2, 3}))),
             ContainsSubstring("is damaged: 4294967303 bytes (4294967295) are more than a "
                               "compressed file of"));
}

}  // namespace
}  // namespace kolo::train
