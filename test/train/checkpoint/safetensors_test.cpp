// Safetensors files: what is written is read; what is damaged or hostile is refused in one line.
#include "train/checkpoint/safetensors.h"

#include <sys/resource.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "test/support/catch.h"
#include "test/train/program/small_run.h"
#include "train/checkpoint/checkpoint.h"
#include "train/checkpoint/gradient_state.h"

namespace {

using namespace kolo::train;
using kolo::test::Folder;
using kolo::test::text_of;

// A file with a header of this text, preceded by `length`, and `data_bytes` zero bytes.
std::string file_with(const std::string& header, std::uint64_t length, std::size_t data_bytes) {
  std::string bytes(sizeof length, '\0');
  std::memcpy(bytes.data(), &length, sizeof length);
  return bytes + header + std::string(data_bytes, '\0');
}

std::string file_with(const std::string& header, std::size_t data_bytes) {
  return file_with(header, header.size(), data_bytes);
}

std::string refusal_of(const Folder& folder, const std::string& bytes) {
  const std::string path = folder.text() + "/x.safetensors";
  std::ofstream(path, std::ios::binary) << bytes;
  try {
    SafetensorsFile file(path);
  } catch (const CheckpointError& error) {
    CHECK_THAT(error.what(), ContainsSubstring("x.safetensors: "));
    CHECK(std::string(error.what()).find('\n') == std::string::npos);
    return error.what();
  }
  return "none";
}

TensorSource numbers(std::string name, std::vector<std::int64_t> shape, float first) {
  return {std::move(name), std::move(shape), [first](std::span<float> out) {
            for (std::size_t i = 0; i < out.size(); ++i) out[i] = first + static_cast<float>(i);
          }};
}

// Limits the length of new files of this process.
class LongestFile {
 public:
  explicit LongestFile(rlim_t bytes) {
    std::signal(SIGXFSZ, SIG_IGN);
    ::getrlimit(RLIMIT_FSIZE, &old_);
    const rlimit limit{bytes, old_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~LongestFile() { ::setrlimit(RLIMIT_FSIZE, &old_); }

 private:
  rlimit old_{};
};

}  // namespace

TEST_CASE("a written file has the same tensors and metadata when it is read") {
  const Folder folder;
  const std::string path = folder.text() + "/a.safetensors";
  const std::vector<TensorSource> tensors{{"count", {}, {}, 7},
                                          numbers("w", {2, 3}, 1),
                                          numbers("empty", {0, 3}, 1),
                                          numbers("b", {2}, 10)};
  write_safetensors(path, {{"model", "small"}, {"text", "\"\\\n\xff"}}, tensors);
  SafetensorsFile file(path);
  CHECK(file.metadata().at("model") == "small");
  CHECK(file.metadata().at("text").starts_with("\"\\\n"));
  REQUIRE(file.tensors().size() == 4);
  CHECK(file.find("count")->dtype == "I64");
  CHECK(file.find("none") == nullptr);
  std::vector<float> w(6), b(2);
  file.read(*file.find("w"), w);
  file.read(*file.find("b"), b);
  CHECK(w == std::vector<float>{1, 2, 3, 4, 5, 6});
  CHECK(b == std::vector<float>{10, 11});
  CHECK_THROWS_AS(file.read(*file.find("b"), w), CheckpointError);
  CHECK(kolo::test::names_in(folder.path) == std::set<std::string>{"a.safetensors", "tmp"});
}

TEST_CASE("halves, bfloats and doubles are read as floats, and whole numbers are refused") {
  const Folder folder;
  const std::string path = folder.text() + "/x.safetensors";
  std::string bytes = file_with(R"({"h":{"dtype":"F16","shape":[4],"data_offsets":[0,8]},)"
                                R"("b":{"dtype":"BF16","shape":[1],"data_offsets":[8,10]},)"
                                R"("d":{"dtype":"F64","shape":[],"data_offsets":[10,18]},)"
                                R"("i":{"dtype":"I16","shape":[1],"data_offsets":[18,20]}})",
                                0);
  const std::uint16_t halves[] = {0x3C00, 0xC100, 0x0001, 0x8000}, bfloat = 0x3FC0;
  const double number = -0.25;
  bytes.append(reinterpret_cast<const char*>(halves), sizeof halves);
  bytes.append(reinterpret_cast<const char*>(&bfloat), sizeof bfloat);
  bytes.append(reinterpret_cast<const char*>(&number), sizeof number).append(2, '\0');
  std::ofstream(path, std::ios::binary) << bytes;
  SafetensorsFile file(path);
  std::vector<float> h(4), one(1);
  file.read(*file.find("h"), h);
  CHECK(h == std::vector<float>{1, -2.5F, 0x1p-24F, 0});
  file.read(*file.find("b"), one);
  CHECK(one[0] == 1.5F);
  file.read(*file.find("d"), one);
  CHECK(one[0] == -0.25F);
  CHECK_THROWS_WITH(file.read(*file.find("i"), one), ContainsSubstring("is I16; expected one of"));
}

// As in ResNets: "layer1.0.conv1.weight" ends with the name of the first parameter.
TEST_CASE("states are found although the name of a parameter is the end of another") {
  const Folder folder;
  kolo::tensor::Parameters parameters;
  std::vector<kolo::tensor::ParameterId> order;
  for (const char* name : {"conv1.weight", "layer1.0.conv1.weight"})
    order.push_back(parameters.add(name, {16}, kolo::tensor::Initial::zero));
  parameters.lay_out(order);
  const std::size_t elements = parameters.values().size();
  ArenaState state;
  for (const char* name : {"momentum", "rank1.momentum"}) state[name].resize(elements, 1.0F);
  const std::string path = folder.text() + "/x.safetensors";
  write_checkpoint(path, {}, 1, tensors_of(parameters, state));
  SafetensorsFile file(path);
  const std::vector<std::string> names = states_in(file, parameters);
  CHECK(std::set(names.begin(), names.end()) ==
        std::set<std::string>{"momentum", "rank1.momentum"});
  CHECK(read_state(reader_of(file), names, parameters) == state);
  std::vector<TensorSource> tensors = tensors_of(parameters, state);
  std::erase_if(tensors, [](const TensorSource& one) {
    return one.name == "optimizer.rank1.momentum.conv1.weight";
  });
  write_checkpoint(path, {}, 1, tensors);
  CHECK_THROWS_WITH(states_in(SafetensorsFile(path), parameters),
                    ContainsSubstring("x.safetensors: it has no tensor "
                                      "'optimizer.rank1.momentum.conv1.weight', so it is "
                                      "incomplete"));
}

TEST_CASE("unsent gradients of all workers that saved them must be in the file") {
  const Folder folder;
  const std::string path = folder.text() + "/x.safetensors";
  const std::vector<std::string> states{"momentum", "rank1.unsent", "unsent"};
  write_checkpoint(path, {{"unsent_workers", "2"}}, 1, {});
  const SafetensorsFile file(path);
  CHECK_NOTHROW(require_all_unsent(file, states));
  CHECK_THROWS_WITH(require_all_unsent(file, std::span(states).last(1)),
                    ContainsSubstring("unsent gradients of 2 workers, but it has those of 1"));
  CHECK_THROWS_WITH(require_all_unsent(file, std::span(states).first(2)),
                    ContainsSubstring("but it has those of 0"));
  write_checkpoint(path, {{"unsent_workers", "1.5"}}, 1, {});
  CHECK_THROWS_WITH(require_all_unsent(SafetensorsFile(path), states),
                    ContainsSubstring("'unsent_workers' in the metadata is '1.5'"));
}

TEST_CASE("a damaged or hostile file is refused with one line") {
  const Folder folder;
  const auto entry = [](const std::string& shape, const std::string& offsets) {
    return R"({"a":{"dtype":"F32","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}}";
  };
  const std::string good = entry("[2]", "[0,8]");
  CHECK(refusal_of(folder, file_with(good, 8)) == "none");
  const auto check = [&](const std::string& bytes, const std::string& reason) {
    CHECK_THAT(refusal_of(folder, bytes), ContainsSubstring(reason));
  };
  check("", "it has 0 bytes");
  check("\1\0\0", "which is no safetensors file");
  check(file_with(good, std::uint64_t{1} << 60U, 8), "1152921504606846976 bytes");
  check(file_with(good, ~std::uint64_t{0}, 8), "no safetensors file");
  check(file_with(good, 90'000'000, 8), "truncated");
  check(file_with(good, 7), "truncated");
  check(file_with(good, 9), "damaged");
  check(file_with("{", 0), "not a JSON object");
  check(file_with("[]", 0), "not a JSON object");
  check(file_with(std::string(1'000'000, '['), 0), "not a JSON object");
  check(file_with(entry("[2]", "[4,12]"), 12), "a hole");
  check(file_with(entry("[2]", "[8,0]"), 8), "do not fit F32 of 2");
  check(file_with(entry("[3]", "[0,8]"), 8), "do not fit F32 of 3");
  check(file_with(entry("[-1]", "[0,8]"), 8), "whole numbers");
  check(file_with(entry("[1.5]", "[0,8]"), 8), "whole numbers");
  check(file_with(entry("2", "[0,8]"), 8), "a list of sides");
  check(file_with(entry("[4611686018427387905,4]", "[0,16]"), 16), "do not fit");
  check(file_with(entry("[18446744073709551615]", "[0,8]"), 8), "too long");
  check(file_with(entry("[2]", "[0,8,16]"), 8), "two offsets");
  check(file_with(R"({"a":{"dtype":"F33","shape":[],"data_offsets":[0,4]}})", 4), "dtype 'F33'");
  check(file_with(R"({"a":{"shape":[],"data_offsets":[0,4]}})", 4), "'a' is damaged");
  check(file_with(R"({"a":3})", 4), "'a' is damaged");
  check(file_with(R"({"__metadata__":{"a":3}})", 0), "'__metadata__' is damaged");
  const std::string one = R"("a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]})";
  check(file_with("{" + one + "," + one + "}", 4), "'a' is there twice");
  check(file_with(R"({"b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)" + one + "}", 4),
        "an overlap");
}

TEST_CASE("a missing file and a folder are refused") {
  const Folder folder;
  CHECK_THROWS_WITH(SafetensorsFile(folder.text() + "/none"), ContainsSubstring("none: "));
  CHECK_THROWS_WITH(SafetensorsFile(folder.text()), ContainsSubstring("it is not a file"));
}

TEST_CASE("a file that cannot be written completely leaves the earlier one as it was") {
  const Folder folder;
  const std::string path = folder.text() + "/a.safetensors";
  write_safetensors(path, {}, std::vector{numbers("w", {10}, 1)});
  const std::string before = text_of(path);
  {
    const LongestFile limit(1000);
    CHECK_THROWS_WITH(write_safetensors(path, {}, std::vector{numbers("w", {1000}, 2)}),
                      ContainsSubstring("a.safetensors: cannot be written: File too large"));
  }
  CHECK(text_of(path) == before);
  CHECK(kolo::test::names_in(folder.path) == std::set<std::string>{"a.safetensors", "tmp"});
}
