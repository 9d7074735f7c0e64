/* Parameter servers of the C interface: push, pull, and both in one round trip.
 *
 * The rules for results, threads, lifetimes and `work` are those of kolo.h.
 */
#pragma once

#include "kolo.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The servers; the same on every rank. All other ranks are workers. With `everywhere`, servers work
 * too: every rank if server_count is 0. Copied. The data is cut into equal parts, which the servers
 * hold in their order, then the other ranks. */
typedef struct kolo_server_plan {
  size_t size;
  int everywhere;
  const int* servers; /* ranks */
  size_t server_count;
  const int* parts; /* how many parts each server holds; null: one each */
  size_t part_count;
} kolo_server_plan;

/* Function of a server, called once for each complete piece of its share. `first` is the index of
 * its first element in the whole operation. `sums` holds the reduction, `bytes` long; replace it by
 * the values that the workers pull. Another value than 0 fails the operation. Runs on the thread
 * that makes progress. Null: the workers pull the reduction itself. */
typedef struct kolo_server_update {
  size_t size;
  int (*update)(void* context, size_t first, void* sums, size_t bytes);
  void* context; /* must live until the operation is done */
} kolo_server_update;

/* First element and number of elements that `rank` serves of `count` elements. */
KOLO_C_API kolo_result kolo_server_share(const kolo_server_plan* plan, int rank, int size,
                                         size_t count, size_t* share_begin, size_t* share_count);

/* Workers give `in` and get `out`, both `count` long. Dedicated servers pass the same count, and
 * null for both. */
KOLO_C_API kolo_result kolo_push_pull(kolo_communicator* communicator, const void* in, void* out,
                                      size_t count, kolo_type type, kolo_op op,
                                      const kolo_server_plan* plan,
                                      const kolo_server_update* update, const kolo_call* call,
                                      kolo_work** work);
/* Workers give `in`; a server's `share` gets its updated share of the reduction. `count`: of `in`,
 * the same on every rank. Null: `in` of dedicated servers, `share` of ranks that do not serve. */
KOLO_C_API kolo_result kolo_push(kolo_communicator* communicator, const void* in, void* share,
                                 size_t count, kolo_type type, kolo_op op,
                                 const kolo_server_plan* plan, const kolo_server_update* update,
                                 const kolo_call* call, kolo_work** work);
/* A server gives its `share`; workers get `out`, `count` long. */
KOLO_C_API kolo_result kolo_pull(kolo_communicator* communicator, const void* share, void* out,
                                 size_t count, kolo_type type, const kolo_server_plan* plan,
                                 const kolo_call* call, kolo_work** work);

#ifdef __cplusplus
}
#endif
