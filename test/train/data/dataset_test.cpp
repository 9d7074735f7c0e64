// The table of data sets: valid and invalid specifications.
#include "train/data/dataset.h"

#include <string>

#include "test/support/catch.h"

namespace kolo::train {
namespace {

std::string refusal(std::string_view specification, const DatasetOptions& options = {}) {
  try {
    open_dataset(specification, Split::train, options);
  } catch (const DataError& error) {
    return error.what();
  }
  return "opened";
}

TEST_CASE("an unknown data set is rejected with the list of known ones") {
  CHECK(refusal("imagenet") ==
        "unknown data set 'imagenet'; expected one of digits, svhn:DIR, mnist:DIR, cifar10:DIR, "
        "imagefolder:DIR, synthetic[:HxWxC[:CLASSES]]");
  CHECK(refusal("") ==
        "unknown data set ''; expected one of digits, svhn:DIR, mnist:DIR, cifar10:DIR, "
        "imagefolder:DIR, synthetic[:HxWxC[:CLASSES]]");
}

TEST_CASE("a malformed data set specification is rejected with the right form") {
  CHECK(refusal("svhn") == "data set 'svhn': write it as 'svhn:DIR'");
  CHECK(refusal("svhn:") == "data set 'svhn:': write it as 'svhn:DIR'");
  CHECK(refusal("mnist") == "data set 'mnist': write it as 'mnist:DIR'");
  CHECK(refusal("digits:here") == "data set 'digits:here': write it as 'digits'");
  CHECK(refusal("digits:") == "data set 'digits:': write it as 'digits'");
}

TEST_CASE("invalid data set sizes are rejected") {
  CHECK(refusal("digits", {.train_size = -1}) ==
        "data set 'digits': train and test size must not be negative (they are -1 and 0); 0 means "
        "all");
  CHECK(refusal("digits", {.train_size = std::int64_t{1} << 40}) ==
        "data set 'digits': at most 2147483648 train samples can be rendered, 1099511627776 were "
        "requested");
}

}  // namespace
}  // namespace kolo::train
