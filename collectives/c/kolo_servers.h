/* Parameter servers of the C interface: push, pull, and both in one round trip.
 *
 * The rules for results, threads, lifetimes and `work` are those of kolo.h.
 */
#pragma once

#include "kolo.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The list of server ranks, the same on every rank; copied. All other ranks are workers. With
 * `everywhere` the workers are servers too, after the listed ranks. The data is cut into equal
 * parts, and each server holds consecutive parts, in this order. */
typedef struct kolo_server_plan {
  size_t size;
  int everywhere;
  const int* servers; /* dedicated server ranks, which do not work */
  size_t server_count;
  const int* parts; /* how many parts each server holds; null: one each */
  size_t part_count;
} kolo_server_plan;

/* Update function of a server, called once for each complete piece of its share. `first` is the
 * index of the piece's first element in the whole data. `sums` has `bytes` bytes of the reduction;
 * replace it by the values that workers pull. A result other than 0 fails the operation. The thread
 * that makes progress calls it. Null: workers pull the reduction itself. */
typedef struct kolo_server_update {
  size_t size;
  int (*update)(void* context, size_t first, void* sums, size_t bytes);
  void* context; /* must live until the operation is done */
} kolo_server_update;

/* First element and length of the share that `rank` serves, of `count` elements; 0 if none. */
KOLO_C_API kolo_result kolo_server_share(const kolo_server_plan* plan, int rank, int size,
                                         size_t count, size_t* share_begin, size_t* share_count);

/* Workers pass `in` and receive `out`, both of `count` elements. Dedicated servers pass the same
 * count, and null as `in` and `out`. */
KOLO_C_API kolo_result kolo_push_pull(kolo_communicator* communicator, const void* in, void* out,
                                      size_t count, kolo_type type, kolo_op op,
                                      const kolo_server_plan* plan,
                                      const kolo_server_update* update, const kolo_call* call,
                                      kolo_work** work);
/* Workers pass `in`; a server's `share` receives its updated share of the reduction. `count` is the
 * length of `in` on every rank. Dedicated servers pass null as `in`, plain workers as `share`. */
KOLO_C_API kolo_result kolo_push(kolo_communicator* communicator, const void* in, void* share,
                                 size_t count, kolo_type type, kolo_op op,
                                 const kolo_server_plan* plan, const kolo_server_update* update,
                                 const kolo_call* call, kolo_work** work);
/* A server passes its `share`; workers receive `out`, of `count` elements. */
KOLO_C_API kolo_result kolo_pull(kolo_communicator* communicator, const void* share, void* out,
                                 size_t count, kolo_type type, const kolo_server_plan* plan,
                                 const kolo_call* call, kolo_work** work);

#ifdef __cplusplus
}
#endif
