// Temporary folders for kolo-train, and arguments for runs of about a second or without end.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "test/support/catch.h"
#include "test/train/program/program.h"

namespace kolo::test {

using Words = std::vector<std::string>;

// A working folder with a subfolder for temporary files; removed by the destructor.
class Folder {
 public:
  Folder() {
    std::string pattern = std::filesystem::temp_directory_path() / "kolo-program-XXXXXX";
    if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("no folder " + pattern);
    path = pattern;
    std::filesystem::create_directory(temporary());
  }
  ~Folder() { std::filesystem::remove_all(path); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  std::string text() const { return path.string(); }
  std::filesystem::path temporary() const { return path / "tmp"; }
  // A start of kolo-train in this folder.
  Start start(Words arguments) const {
    return {.arguments = std::move(arguments),
            .folder = text(),
            .variables = {{"TMPDIR", temporary().string()}}};
  }

  std::filesystem::path path;
};

// Arguments for a run of seconds: the small model, and few samples with an uneven last batch.
inline Words small(Words words, int epochs = 2) {
  for (const std::string& word : {std::string("--model=small"), std::string("--train-size=101"),
                                  std::string("--test-size=33"), std::string("--batch-size=16"),
                                  "--epochs=" + std::to_string(epochs),
                                  std::string("--hash-every=2"), std::string("--timeout=30")}) {
    words.push_back(word);
  }
  return words;
}

// The first epoch takes hours. After kTraining appears in the output, all ranks are in it.
inline Words endless_training(Words words) {
  words = small(std::move(words));
  words.insert(words.end(), {"--train-size=4000000", "--batch-size=1"});
  return words;
}
inline constexpr const char* kTraining = "training, epoch 1";  // in the progress output

// One iteration, and an evaluation that takes hours.
inline Words endless_evaluation(Words words) {
  words = small(std::move(words));
  words.insert(words.end(), {"--train-size=16", "--test-size=4000000", "--batch-size=8"});
  return words;
}
inline constexpr const char* kEvaluating = "\"activity\":\"evaluating\"";  // an event

inline std::set<std::string> names_in(const std::filesystem::path& folder) {
  std::set<std::string> names;
  std::error_code ignored;  // the folder may not exist
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    names.insert(entry.path().filename().string());
  }
  return names;
}

inline std::string text_of(const std::filesystem::path& file) {
  std::ostringstream text;
  text << std::ifstream(file, std::ios::binary).rdbuf();
  return text.str();
}

// Checks that no process, temporary file or named shared memory of the program is left (other
// programs may have some).
inline void check_nothing_is_left(const Program& program, const Folder& folder) {
  CHECK(program.left_behind() == std::vector<pid_t>{});
  CHECK(names_in(folder.temporary()) == std::set<std::string>{});
  for (const std::string& name : names_in("/dev/shm")) {
    INFO(name);
    CHECK(name.find("kolo") == std::string::npos);
  }
}

}  // namespace kolo::test
