// The error of open_mnist, for comparison.
#pragma once

#include <string>

#include "test/train/data/idx_bytes.h"
#include "train/data/mnist.h"

namespace kolo::train {

// The error of open_mnist for the training split, without the path of the folder; "opened" if
// there is none.
inline std::string mnist_refusal(const MnistFolder& folder, const DatasetOptions& options = {}) {
  try {
    open_mnist(folder.text(), Split::train, options);
  } catch (const DataError& error) {
    std::string message = error.what();
    for (std::size_t at = 0; (at = message.find(folder.text() + "/")) != std::string::npos;)
      message.erase(at, folder.text().size() + 1);
    return message;
  }
  return "opened";
}

}  // namespace kolo::train
