// LightGBM over kolo: the two functions that LGBM_NetworkInitWithFunctions takes, as a library.
//
//   kolo_lightgbm_use(world);  // of kolo_create_from_environment(), for example
//   LGBM_NetworkInitWithFunctions(kolo_size(world), kolo_rank(world), kolo_lightgbm_reduce_scatter,
//                                 kolo_lightgbm_all_gather);
//   ... make the data set, train with num_machines=SIZE and tree_learner=data or voting
//   LGBM_NetworkFree();
//
// Built by `c++ -std=c++20 -O2 -shared -fPIC lightgbm.cpp $(pkg-config --cflags --libs kolo)`.
//
// test/collectives/lightgbm_test.py does this from Python, with ctypes.
//
// LightGBM passes no user data, and calls back on the thread that called it. So each thread has a
// communicator of its own. The functions have no result: a failure is thrown, and LightGBM gives
// its text as its own error. kolo_lightgbm_failure() returns it, too. Types are those of
// include/LightGBM/meta.h. Lengths are in bytes.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include <kolo.h>

namespace {

using Reducer = void (*)(const char* in, char* inout, int type_size, std::int32_t bytes);

struct Thread {
  kolo_communicator* world = nullptr;
  std::vector<std::size_t> counts;  // of each rank's block, in elements
  std::string failure;
};
thread_local Thread this_thread;

[[noreturn]] void fail(const std::string& text) {
  this_thread.failure = text;
  throw std::runtime_error(text);
}

void require(kolo_result result) {
  if (result != KOLO_OK) fail(kolo_last_failure(this_thread.world).text);
}

// Sets this_thread.counts. kolo's blocks are packed one after another, as those of LightGBM are.
void count_blocks(const std::int32_t* starts, const std::int32_t* lengths, int blocks,
                  std::size_t element) {
  if (this_thread.world == nullptr) fail("kolo_lightgbm_use() was not called in this thread");
  if (blocks != kolo_size(this_thread.world)) {
    fail("LightGBM has " + std::to_string(blocks) + " machines, and the communicator has " +
         std::to_string(kolo_size(this_thread.world)) + " ranks");
  }
  this_thread.counts.clear();
  std::int64_t end = 0;
  for (int block = 0; block < blocks; ++block) {
    if (starts[block] != end) fail("block " + std::to_string(block) + " does not follow the last");
    end += lengths[block];
    this_thread.counts.push_back(static_cast<std::size_t>(lengths[block]) / element);
  }
}

// Bytes that kolo must not separate. Histograms of quantized gradients are reduced in pairs: the
// reducer rounds up to two of `type_size`. No block separates a pair then.
std::size_t element_bytes(const std::int32_t* lengths, int blocks, int type_size) {
  for (int block = 0; block < blocks; ++block) {
    if (lengths[block] % type_size != 0) fail("a block has a part of an element");
  }
  for (int block = 0; block < blocks; ++block) {
    if (lengths[block] % (2 * type_size) != 0) return static_cast<std::size_t>(type_size);
  }
  return 2 * static_cast<std::size_t>(type_size);
}

struct Reduction {
  Reducer reducer;
  int type_size;
  std::size_t element;
};

// out = left op right. All reducers of LightGBM are commutative.
int combine(void* context, void* out, const void* left, const void* right, std::size_t count) {
  const auto& reduction = *static_cast<const Reduction*>(context);
  const std::size_t bytes = count * reduction.element;
  if (out == right)
    right = left;
  else if (out != left)
    std::memcpy(out, left, bytes);
  reduction.reducer(static_cast<const char*>(right), static_cast<char*>(out), reduction.type_size,
                    static_cast<std::int32_t>(bytes));
  return 0;
}

}  // namespace

#define KOLO_LIGHTGBM_API extern "C" __attribute__((visibility("default")))

// The communicator of this thread from now on; null: none. The caller keeps and frees it.
KOLO_LIGHTGBM_API void kolo_lightgbm_use(kolo_communicator* world) {
  this_thread.world = world;
  this_thread.failure.clear();
}

// The first failure in this thread since kolo_lightgbm_use(); empty if there is none.
KOLO_LIGHTGBM_API const char* kolo_lightgbm_failure() { return this_thread.failure.c_str(); }

// `output` receives this rank's block of the reduction of all ranks' `input`.
KOLO_LIGHTGBM_API void kolo_lightgbm_reduce_scatter(char* input, std::int32_t, int type_size,
                                                    const std::int32_t* starts,
                                                    const std::int32_t* lengths, int blocks,
                                                    char* output, std::int32_t,
                                                    const Reducer& reducer) {
  const std::size_t element = element_bytes(lengths, blocks, type_size);
  count_blocks(starts, lengths, blocks, element);
  Reduction reduction{reducer, type_size, element};
  kolo_user_op op{};
  op.size = sizeof op;
  op.element_bytes = element;
  op.combine = combine;
  op.context = &reduction;
  kolo_call call{};
  call.size = sizeof call;
  call.user_op = &op;
  require(kolo_reduce_scatter_v(this_thread.world, input, output, this_thread.counts.data(),
                                KOLO_USER_TYPE, KOLO_USER, &call, nullptr));
}

// `output` receives the blocks of all ranks. `input` is this rank's, and may begin at `output`.
KOLO_LIGHTGBM_API void kolo_lightgbm_all_gather(char* input, std::int32_t,
                                                const std::int32_t* starts,
                                                const std::int32_t* lengths, int blocks,
                                                char* output, std::int32_t) {
  count_blocks(starts, lengths, blocks, 1);
  const int rank = kolo_rank(this_thread.world);
  char* const mine = output + starts[rank];
  std::memmove(mine, input, this_thread.counts[rank]);  // in place, blocks of two ranks overlap
  require(kolo_all_gather_v(this_thread.world, mine, output, this_thread.counts.data(), KOLO_UINT8,
                            nullptr, nullptr));
}
