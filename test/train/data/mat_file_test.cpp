// The outermost structure of .mat files: valid, of another format, and truncated at every byte.
#include "train/data/mat_file.h"

#include "test/support/catch.h"
#include "test/train/data/mat_bytes.h"
#include "train/data/dataset.h"

namespace kolo::train {
namespace {

std::string fault(const std::string& bytes) {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder.path() / "some.mat";
  MatBytes::write(path, bytes);
  try {
    check_mat_framing(path);
  } catch (const DataError& error) {
    const std::string message = error.what();
    REQUIRE(message.find(path.string()) != std::string::npos);
    return message.substr(message.find("some.mat") + 10);
  }
  return "";
}

const MatBytes& two_variables() {
  static const MatBytes file = MatBytes()
                                   .add<std::uint8_t>("X", kMatUint8, {2, 2}, {1, 2, 3, 4})
                                   .add<double>("y", kMatDouble, {1, 1}, {5});
  return file;
}

TEST_CASE("a file that is not a MATLAB 5 file is rejected") {
  CHECK(fault(two_variables().bytes()) == "");
  CHECK_THAT(fault(""),
             Catch::Matchers::StartsWith(
                 "is not a MATLAB 5 file: it does not begin with 'MATLAB 5.0 MAT-file'"));
  CHECK_THAT(fault(std::string(4096, 'x')), Catch::Matchers::StartsWith("is not a MATLAB 5 file"));
  CHECK_THAT(fault("MATLAB 7.3 MAT-file" + std::string(500, ' ')),
             Catch::Matchers::StartsWith("is not a MATLAB 5 file"));
  std::string no_order = two_variables().bytes();
  no_order[126] = 'Q';
  CHECK_THAT(fault(no_order), ContainsSubstring("the byte order mark"));
}

TEST_CASE("a file that is cut inside a variable is reported as truncated") {
  const std::string whole = two_variables().bytes();
  const std::size_t second =
      MatBytes().add<std::uint8_t>("X", kMatUint8, {2, 2}, {1, 2, 3, 4}).bytes().size();
  for (std::size_t size = 128; size < whole.size(); ++size) {
    const std::string message = fault(whole.substr(0, size));
    CAPTURE(size, message);
    if (size == second) {
      CHECK(message == "");
    } else {
      CHECK_THAT(message, Catch::Matchers::StartsWith("is truncated"));
    }
  }
}

TEST_CASE("an element without a type is reported as damage, also if more elements follow") {
  CHECK_THAT(fault(two_variables().bytes() + std::string(1024, '\0')),
             Catch::Matchers::StartsWith("is damaged: the element that begins at byte") &&
                 ContainsSubstring("has no type"));
}

TEST_CASE("a file that cannot be opened is reported by name") {
  CHECK_THROWS_WITH(check_mat_framing("/nowhere/at/all.mat"),
                    "'/nowhere/at/all.mat' cannot be opened: No such file or directory");
}

}  // namespace
}  // namespace kolo::train
