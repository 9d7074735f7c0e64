// Replay of fuzzer inputs without a fuzzer: each argument is an input file, or a folder of them.
//
// Every build runs the committed corpus through the same entry points, with any compiler and any
// sanitizer. A single input can also run in a debugger.
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

#include "test/fuzz/input.h"

namespace {

namespace fs = std::filesystem;

std::vector<fs::path> files_in(const fs::path& place) {
  if (!fs::is_directory(place)) return {place};
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(place)) {
    if (entry.is_regular_file()) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

void replay(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (!file.is_open() || file.bad())
    throw std::runtime_error(path.string() + " cannot be read: is the path right?");
  LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
}

}  // namespace

int main(int argc, char** argv) {
  std::size_t count = 0;
  std::string now = "(none)";
  try {
    for (const char* place : std::span(argv, static_cast<std::size_t>(argc)).subspan(1)) {
      for (const fs::path& file : files_in(place)) {
        now = file.string();
        std::cout << now << std::endl;  // flushed, so that the input is known if it aborts here
        replay(file);
        ++count;
      }
    }
  } catch (const std::exception& error) {
    std::cerr << "replay: " << now << ": " << error.what() << "\n";
    return 1;
  }
  std::cout << count << " inputs\n";
  if (count == 0) std::cerr << "replay: no input; give it files, or folders of them\n";
  return count == 0 ? 1 : 0;
}
