#include "transports/launch/pmix.h"

#include <fmt/format.h>

#include <array>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <optional>

#include "transports/error.h"
#include "transports/posix/library.h"

namespace kolo::inline v0::launch {
namespace {

// Types and constants of pmix_common.h.
constexpr int kSuccess = 0;
constexpr std::uint8_t kGlobal = 3;   // PMIX_GLOBAL: for ranks of this host and of others
constexpr std::uint16_t kString = 3;  // PMIX_STRING
constexpr const char* kKey = "kolo-store";

struct Process {  // pmix_proc_t
  std::array<char, 256> name_space;
  std::uint32_t rank;
};

struct Value {  // pmix_value_t, whose union has at most 24 bytes
  std::uint16_t type;
  union {
    char* string;
    std::array<char, 24> bytes;
  } data;
};

using Receive = void(int status, Value* value, void* state);
using Init = int(Process* self, const void* infos, std::size_t count);
using Put = int(std::uint8_t scope, const char* key, Value* value);
using Commit = int();
using GetNonBlocking = int(const Process* of, const char* key, const void* infos, std::size_t count,
                           Receive* receive, void* state);
using Finalize = int(const void* infos, std::size_t count);

struct Library {
  Init* init = nullptr;
  Put* put = nullptr;
  Commit* commit = nullptr;
  GetNonBlocking* get = nullptr;
  Finalize* finalize = nullptr;
};

Library load(const std::string& prefix) {
  std::string why;
  for (const char* folder : {"/lib/", "/lib/openmpi/", "/lib/pmix/", ""}) {
    const bool is_anywhere = *folder == '\0';
    if (prefix.empty() && !is_anywhere) continue;
    const posix::InstalledLibrary library((is_anywhere ? "" : prefix + folder) + "libpmix.so.2");
    why = library.why();
    if (!why.empty()) continue;
    Library found;
    if (library.find("PMIx_Init", found.init) && library.find("PMIx_Put", found.put) &&
        library.find("PMIx_Commit", found.commit) && library.find("PMIx_Get_nb", found.get) &&
        library.find("PMIx_Finalize", found.finalize)) {
      return found;
    }
    why = "it lacks a function of PMIx 3";
  }
  throw Error(ErrorCode::kUnavailable, kNoPeer,
              fmt::format("mpirun started ranks on several hosts, and libpmix.so.2, by which they "
                          "find each other, cannot be used ({}): install it (Debian: libpmix2), or "
                          "set MASTER_ADDR and MASTER_PORT",
                          why));
}

void require(int status, const char* call) {
  if (status == kSuccess) return;
  throw Error(
      ErrorCode::kUnavailable, kNoPeer,
      fmt::format("{} of libpmix failed with status {}: start the ranks with mpirun, or set "
                  "MASTER_ADDR and MASTER_PORT",
                  call, status));
}

// Answer of PMIx_Get_nb, which comes in a thread of libpmix, maybe after the deadline.
struct Answer {
  std::mutex mutex;
  std::condition_variable changed;
  std::optional<int> status;
  std::string text;
};

void receive(int status, Value* value, void* state) {
  const std::unique_ptr<std::shared_ptr<Answer>> held(static_cast<std::shared_ptr<Answer>*>(state));
  Answer& answer = **held;
  const std::lock_guard lock(answer.mutex);
  answer.status = status;
  if (status == kSuccess && value != nullptr && value->type == kString)
    answer.text = value->data.string;
  answer.changed.notify_all();
}

std::string text_of_rank_0(const Library& library, Process of, Deadline deadline) {
  const auto start = Clock::now();
  of.rank = 0;
  const auto answer = std::make_shared<Answer>();
  auto held = std::make_unique<std::shared_ptr<Answer>>(answer);
  require(library.get(&of, kKey, nullptr, 0, receive, held.get()), "PMIx_Get_nb");
  held.release();  // receive() destroys it
  std::unique_lock lock(answer->mutex);
  if (!answer->changed.wait_until(lock, deadline, [&] { return answer->status.has_value(); })) {
    const std::chrono::duration<double> waited = Clock::now() - start;
    throw Error(ErrorCode::kDeadline, 0,
                fmt::format("waited {:.1f} s for rank 0 to announce the store through PMIx: is it "
                            "late or gone?",
                            waited.count()));
  }
  require(*answer->status, "PMIx_Get_nb");
  return answer->text;
}

}  // namespace

std::string announce_by_pmix(const std::string& prefix, int rank, const std::string& text,
                             Deadline deadline) {
  const Library library = load(prefix);
  Process self{};
  require(library.init(&self, nullptr, 0), "PMIx_Init");
  if (rank == 0) {
    std::string copy = text;
    Value value{kString, {copy.data()}};
    require(library.put(kGlobal, kKey, &value), "PMIx_Put");
    require(library.commit(), "PMIx_Commit");
  }
  std::string announced = rank == 0 ? text : text_of_rank_0(library, self, deadline);
  library.finalize(nullptr, 0);
  return announced;
}

}  // namespace kolo::inline v0::launch
