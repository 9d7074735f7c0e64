#include "train/fetch/fetch.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "train/data/dataset.h"
#include "train/fetch/child_program.h"

namespace kolo::train {
namespace {

namespace fs = std::filesystem;

// A file or folder that is removed at the end unless it was moved away.
class Scratch {
 public:
  explicit Scratch(fs::path path) : path_(std::move(path)) {
    std::error_code ignored;
    fs::remove_all(path_, ignored);  // of an earlier run that was killed
  }
  ~Scratch() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  const fs::path& path() const { return path_; }
  std::string text() const { return path_.string(); }

 private:
  fs::path path_;
};

void say(const std::string& text) { fmt::print(stderr, "fetch: {}\n", text); }

// Throws if a program that did its part of the work failed.
void require_success(const ChildResult& result, const std::string& program,
                     const std::string& failure) {
  if (result.exit_code == 0) return;
  if (result.exit_code == kProgramNotFound)
    throw FetchError(fmt::format("{}: there is no {}; install it", failure, program));
  if (result.exit_code > 128) {
    throw FetchError(
        fmt::format("{}: {} was ended by signal {}", failure, program, result.exit_code - 128),
        result.exit_code);
  }
  throw FetchError(fmt::format("{}: {} failed with exit code {} (its message is above)", failure,
                               program, result.exit_code));
}

void download(const std::string& url, const std::string& path) {
  const bool is_watched = isatty(STDERR_FILENO) == 1;
  const std::string failure = fmt::format("{} cannot be downloaded", url);
  const ChildResult curl =
      run_child({"curl", "--fail", "--location", "--show-error",
                 is_watched ? "--progress-bar" : "--silent", "--output", path, "--url", url});
  if (curl.exit_code != kProgramNotFound) return require_success(curl, "curl", failure);
  const ChildResult wget =
      run_child({"wget", is_watched ? "--show-progress" : "--no-verbose", "-O", path, "--", url});
  if (wget.exit_code == kProgramNotFound)
    throw FetchError(fmt::format("{}: there is neither curl nor wget; install one", failure));
  require_success(wget, "wget", failure);
}

std::string md5_of(const fs::path& path) {
  const ChildResult result = run_child({"md5sum", "--", path.string()});
  require_success(result, "md5sum", fmt::format("'{}' cannot be checked", path.string()));
  // A backslash at the start marks a name with special characters.
  const std::string_view text = result.output;
  return std::string(text.substr(text.starts_with('\\') ? 1 : 0, 32));
}

// True if the file exists, and need not be downloaded.
bool is_there(const fs::path& path, const RemoteFile& file) {
  std::error_code error;
  if (!fs::exists(path, error)) return false;
  if (!file.folder.empty()) {
    say(fmt::format("'{}' exists; it was not checked", path.string()));
    return true;
  }
  const std::string md5 = md5_of(path);
  if (md5 != file.md5) {
    throw FetchError(
        fmt::format("'{}' exists, but its MD5 is {}, not {}; move it away to download it",
                    path.string(), md5, file.md5));
  }
  say(fmt::format("'{}' exists, with the right MD5", path.string()));
  return true;
}

void move_to(const fs::path& from, const fs::path& to) {
  std::error_code error;
  fs::rename(from, to, error);
  if (error) throw FetchError(fmt::format("'{}': {}", to.string(), error.message()));
}

void unpack(const fs::path& archive, const fs::path& to) {
  const Scratch folder(to.parent_path() / fmt::format(".{}.unpacked", to.filename().string()));
  const std::string failure = fmt::format("'{}' cannot be unpacked", archive.string());
  std::error_code error;
  fs::create_directory(folder.path(), error);
  if (error) throw FetchError(fmt::format("{}: {}", failure, error.message()));
  require_success(run_child({"tar", "-x", "-z", "-f", archive.string(), "-C", folder.text()}),
                  "tar", failure);
  move_to(folder.path() / to.filename(), to);
}

void fetch_file(const RemoteFile& file, const std::string& url, const fs::path& directory) {
  const fs::path target = directory / (file.folder.empty() ? file.name : file.folder);
  if (is_there(target, file)) return;
  const Scratch part(directory / fmt::format(".{}.part", file.name));
  say(fmt::format("{} -> '{}'", url, target.string()));
  download(url, part.text());
  if (const std::string md5 = md5_of(part.path()); md5 != file.md5) {
    throw FetchError(
        fmt::format("{} has the MD5 {}, but {} was expected; it is not the official file, or was "
                    "damaged on the way; nothing of it was kept",
                    url, md5, file.md5));
  }
  if (file.folder.empty()) return move_to(part.path(), target);
  unpack(part.path(), target);
}

}  // namespace

const std::vector<RemoteDataset>& remote_datasets() {
  static const std::vector<RemoteDataset> datasets{
      {"svhn",
       "http://ufldl.stanford.edu/housenumbers/",
       {{"test_32x32.mat", "eb5a983be6a315427106f1b164d9cef3", ""},
        {"train_32x32.mat", "e26dedcc434d2e4c54c9b2d4a06d8373", ""}}},
      {"mnist",
       "https://ossci-datasets.s3.amazonaws.com/mnist/",
       {{"t10k-labels-idx1-ubyte.gz", "ec29112dd5afa0611ce80d1b7f02629c", ""},
        {"t10k-images-idx3-ubyte.gz", "9fb629c4189551a2d022fa330f9573f3", ""},
        {"train-labels-idx1-ubyte.gz", "d53e105ee54ea40749a09fcbcd1e9432", ""},
        {"train-images-idx3-ubyte.gz", "f68b3c2dcbeaaa9fbdd348bbdeb94873", ""}}},
      {"cifar10",
       "https://www.cs.toronto.edu/~kriz/",
       {{"cifar-10-binary.tar.gz", "c32a1d4ab5d03f1284b67883e8d87530", "cifar-10-batches-bin"}}},
  };
  return datasets;
}

void fetch(const RemoteDataset& dataset, const std::string& directory) {
  std::error_code error;
  fs::create_directories(directory, error);
  if (error || !fs::is_directory(directory, error)) {
    throw DataError(fmt::format("fetch: '{}' cannot be made a folder: {}", directory,
                                error ? error.message() : "it is a file"));
  }
  for (const RemoteFile& file : dataset.files) fetch_file(file, dataset.url + file.name, directory);
}

}  // namespace kolo::train
