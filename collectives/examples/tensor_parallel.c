// Tensor parallelism in C: each rank has a slice of every layer's weights, and the slices' results
// are summed by one all-reduce a layer, as in the inference of large language models.
//
//   kolo-run -n 2 example_tensor_parallel
//
// A layer computes y = W x for a batch of vectors. Rank r has some columns of W and the same rows
// of x, so its product is a part of the sum. Prints the median time of the all-reduce (64 KiB).
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kolo.h"

enum { kWidth = 512, kBatch = 32, kValues = kWidth * kBatch, kLayers = 32 };

// The weight in row i and column j: every rank can compute it, so no file is needed. Rows have the
// sum 1, so activations keep their size.
static float weight(int i, int j) { return (float)(1 + (i + j) % 3) / (2.0f * kWidth); }

// part = the product of columns [first, first + columns) of W with the same rows of x.
static void multiply_slice(const float* x, int first, int columns, float* part) {
  memset(part, 0, kValues * sizeof *part);
  for (int i = 0; i < kWidth; ++i) {
    for (int j = first; j < first + columns; ++j) {
      const float w = weight(i, j);
      for (int b = 0; b < kBatch; ++b) part[i * kBatch + b] += w * x[j * kBatch + b];
    }
  }
}

static double now_us(void) {
  struct timespec time;
  timespec_get(&time, TIME_UTC);
  return 1e6 * (double)time.tv_sec + 1e-3 * (double)time.tv_nsec;
}

static int compare_times(const void* a, const void* b) {
  const double left = *(const double*)a, right = *(const double*)b;
  return (left > right) - (left < right);
}

static int report(const kolo_communicator* world) {
  fprintf(stderr, "%s\n", kolo_last_failure(world).text);
  return 1;
}

int main(void) {
  kolo_communicator* world;
  if (kolo_create_from_environment(NULL, &world) != KOLO_OK) return report(NULL);
  const int rank = kolo_rank(world), size = kolo_size(world);
  const int first = (int)kolo_chunk_begin(kWidth, size, rank);
  const int columns = (int)kolo_chunk_count(kWidth, size, rank);

  // Peers map this memory, so they read it in place.
  void* memory;
  if (kolo_allocate(world, kValues * sizeof(float), &memory) != KOLO_OK) return report(world);
  float* const part = memory;
  static float x[kValues];
  for (int i = 0; i < kValues; ++i) x[i] = 1;

  double times[kLayers];
  for (int layer = 0; layer < kLayers; ++layer) {
    multiply_slice(x, first, columns, part);
    if (kolo_barrier(world, NULL, NULL) != KOLO_OK) return report(world);  // times the sum alone
    const double start = now_us();
    if (kolo_all_reduce(world, part, part, kValues, KOLO_FLOAT32, KOLO_SUM, NULL, NULL) != KOLO_OK)
      return report(world);
    times[layer] = now_us() - start;
    memcpy(x, part, sizeof x);
  }
  qsort(times, kLayers, sizeof *times, compare_times);
  printf("rank %d of %d: %d layers, the mean activation is %.3f; all-reduce of %zu bytes: %.1f us\n",
         rank, size, kLayers, (double)(x[0] + x[kValues / 2] + x[kValues - 1]) / 3, sizeof x,
         times[kLayers / 2]);
  kolo_free(world);
  kolo_release(memory);
  return 0;
}
