// Download of data sets: `kolo-train fetch svhn|mnist|cifar10 DIR`.
//
// curl or wget download, md5sum checks, tar unpacks: programs that are on nearly every machine, so
// kolo-train needs no library for it. A file gets its name after its check, so a file with its name
// is complete. A broken download starts again from the beginning.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

namespace kolo::train {

struct RemoteFile {
  std::string name;
  std::string md5;     // as its authors or PyTorch's torchvision publish it
  std::string folder;  // of an archive, what it has in it; empty for a file that is kept
};

struct RemoteDataset {
  std::string name;  // as in --dataset
  std::string url;   // of the folder with the files, with a slash at the end
  std::vector<RemoteFile> files;
};

// The data sets that can be downloaded, from the places of their authors or of PyTorch.
const std::vector<RemoteDataset>& remote_datasets();

// Error: a download failed. The message says what, from where, and what to do.
class FetchError : public std::runtime_error {
 public:
  FetchError(const std::string& message, int exit_code = 1)
      : std::runtime_error(message), exit_code_(exit_code) {}
  int exit_code() const { return exit_code_; }  // above 128 after an interrupt

 private:
  int exit_code_;
};

// Downloads the files that `directory` lacks, and makes it if needed. Writes a line per file to
// standard error. A file that exists and has another checksum is an error, and stays. Throws
// FetchError; DataError if the directory cannot be made.
void fetch(const RemoteDataset& dataset, const std::string& directory);

// The command; `arguments` begin with "fetch". Returns the exit code. Throws UsageError.
int run_fetch(const std::vector<std::string>& arguments);

}  // namespace kolo::train
