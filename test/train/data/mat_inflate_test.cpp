// Integrity of the compressed parts of a .mat file, which matio does not check.
#include <zlib.h>

#include <string>

#include "test/support/catch.h"
#include "test/train/data/mat_bytes.h"
#include "train/data/dataset.h"
#include "train/data/mat_file.h"

namespace kolo::train {
namespace {

std::string damage_in(const std::string& bytes) {
  const TemporaryFolder folder;
  MatBytes::write(folder.path() / "some.mat", bytes);
  try {
    check_mat_framing(folder.path() / "some.mat");
  } catch (const DataError& error) {
    const std::string message = error.what();
    return message.substr(message.find("some.mat") + 10);
  }
  return "";
}

std::string deflated_by_zlib(const std::string& plain) {
  uLongf bytes = compressBound(plain.size());
  std::string deflated(bytes, '\0');
  REQUIRE(compress(reinterpret_cast<Bytef*>(deflated.data()), &bytes,
                   reinterpret_cast<const Bytef*>(plain.data()), plain.size()) == Z_OK);
  deflated.resize(bytes);
  return deflated;
}

TEST_CASE("a compressed element is inflated to its end, and its checksum is verified") {
  std::string plain;  // no repeated parts, so that any change is visible
  for (int i = 0; i < 10'000; ++i) plain += std::to_string(i) + ' ';
  const std::string deflated = deflated_by_zlib(plain);
  const auto file = [](const std::string& data) {
    return MatBytes().bytes() + MatBytes::tag(15, data.size()) + data;
  };
  CHECK(damage_in(file(deflated)) == "");
  for (const std::size_t at : {std::size_t{2}, deflated.size() / 2, deflated.size() - 1}) {
    std::string damaged = deflated;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    CAPTURE(at);
    CHECK_THAT(damage_in(file(damaged)),
               Catch::Matchers::StartsWith("is damaged: the compressed element that begins at byte "
                                           "128 cannot be inflated: "));
  }
  CHECK_THAT(damage_in(file(deflated.substr(0, deflated.size() - 1))),
             ContainsSubstring("it ends too early"));
  CHECK_THAT(damage_in(file(deflated + "x")), ContainsSubstring("extra bytes follow its end"));
}

}  // namespace
}  // namespace kolo::train
