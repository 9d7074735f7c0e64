// Fuzzer of the file store: other data in the store's file while ranks use it.
#include <fcntl.h>
#include <unistd.h>
#include <cstdint>
#include <filesystem>
#include <string>

#include "test/fuzz/input.h"
#include "transports/error.h"
#include "transports/posix/descriptor.h"
#include "transports/rendezvous.h"

using namespace kolo;
using namespace kolo::fuzz;

namespace {

// Records, complete or partial.
std::string record_of(Input& input) {
  if (input.below(4) == 0) return input.short_text();
  const std::uint32_t kind = input.below(7);
  const auto number = input.number<std::int64_t>();
  const std::string key = input.short_text();
  const std::string value = input.short_text();
  std::string bytes;
  const auto put = [&bytes](auto field) {
    bytes.append(reinterpret_cast<const char*>(&field), sizeof field);
  };
  put(kind);
  put(static_cast<std::uint32_t>(key.size()));
  put(static_cast<std::uint32_t>(value.size()));
  put(number);
  return bytes + key + value;
}

void note_and_ask(Store& store, const std::string& key, const std::string& value) {
  store.note(key, value);
  const auto answer = store.ask(key);
  require(answer->has_come && answer->value == value, "what was noted is there");
}

void use(Store& store, Input& input) {
  const std::string key = input.short_text();
  switch (input.below_or_rare(6, 2)) {
    case 0:
      return static_cast<void>(store.try_get(key));
    case 1:
      return static_cast<void>(store.add(key, input.number<std::int64_t>()));
    case 2:
      return store.set(key, key);
    case 3:
      return store.join(static_cast<int>(input.below(4)));
    case 4:
      return store.leave();
    case 6:
      return note_and_ask(store, key, input.short_text());
    case 7: {
      const auto answer = store.ask(key);
      require(answer->has_come && answer->value == store.try_get(key),
              "a file without a lock answers at once, with the same value");
      return;
    }
    default:
      return static_cast<void>(store.failure());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input input(data, size);
  const auto path = std::filesystem::temp_directory_path() /
                    ("kolo-fuzz-" + std::to_string(::getpid()) + ".store");
  const auto store = open_file_store(path.string(), 2, Clock::now() + std::chrono::seconds(20));
  const posix::Descriptor file(::open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
  require(file.is_open(), "the store's file is there");
  try {
    while (!input.is_empty()) {
      const std::string record = record_of(input);
      require(
          ::write(file.get(), record.data(), record.size()) == static_cast<ssize_t>(record.size()),
          "there is room on the disk");
      use(*store, input);
    }
  } catch (const Error& error) {
    require(error.code() == ErrorCode::kProtocol, "what is no record is damage");
  }
  return 0;
}
