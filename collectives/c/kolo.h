/* C interface of kolo: the collectives and messages of one rank with its peers. C99 and C++.
 *
 *     kolo_communicator* world;
 *     kolo_result result = kolo_create_from_environment(NULL, &world);
 *     if (result == KOLO_OK)
 *       result = kolo_all_reduce(world, data, data, count, KOLO_FLOAT32, KOLO_SUM, NULL, NULL);
 *     if (result != KOLO_OK) puts(kolo_last_failure(NULL).text);
 *     kolo_free(world);
 *
 * The functions are those of kolo::Communicator (collectives/communicator.h), which describes
 * order, groups and failures at length. More headers: kolo_store.h (where the ranks meet),
 * kolo_servers.h (push and pull of parameter servers), kolo_statistics.h (names, costs, traffic).
 * Device memory needs the C++ interface.
 *
 * Results. Every function that can fail returns a kolo_result. kolo_last_failure() has the text.
 * No function throws an exception, and no failure ends the program.
 *
 * Threading. All functions may be called from several threads at once, also for one communicator.
 * Every rank must issue the same operations in the same order. kolo starts a thread only for
 * kolo_options.progress_thread, for kolo_serve_store(), and on rank 0 if that rank serves the
 * store (kolo_create_from_environment() with MASTER_ADDR, kolo_create_by_all_gather()).
 *
 * Lifetime. A function that creates a handle names the function that frees it. Null may be freed.
 * Arguments must live until the call returns, unless a function says more. The memory of an
 * operation must live until the operation is done. After kolo_free(), a kolo_work may only be
 * waited for, tested and freed; kolo_free() says what happens to calls that run meanwhile.
 *
 * Counts are in elements, never in bytes. In operations with chunks, `count` is the length of
 * `all`, and the chunk of rank r has kolo_chunk_count(count, size, r) elements. To work in place,
 * pass the same address twice, or pass as `chunk` the address of this rank's chunk in `all`. Other
 * overlaps are not allowed.
 *
 * fork(): a communicator belongs to the process that made it. In a child process its functions
 * and works return KOLO_ERROR_INVALID_ARGUMENT, and kolo_free() does not touch the parent's job.
 *
 * Versions. A struct that a caller fills in begins with its `size` in bytes. Later versions add
 * fields at the end only, and read missing fields as 0. Set `size`, and all other fields to 0:
 *
 *     kolo_call call = {.size = sizeof call};
 *     call.algorithm = "ring";
 *
 * In C++ this is `kolo_call call = {}; call.size = sizeof call;`.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* The build of libkolo.so defines KOLO_BUILDS_SHARED_LIBRARY. Static archives export no symbol. */
#if defined(KOLO_BUILDS_SHARED_LIBRARY)
#define KOLO_C_API __attribute__((visibility("default")))
#else
#define KOLO_C_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Version of the linked library: "0.2.0". */
KOLO_C_API const char* kolo_version(void);

/* --- results and failures --- */

typedef enum kolo_result {
  KOLO_OK = 0,
  KOLO_ERROR_PEER_LOST = 1,        /* the peer's process or connection is gone */
  KOLO_ERROR_DEADLINE = 2,         /* a wait passed its deadline */
  KOLO_ERROR_MISMATCH = 3,         /* ranks called different operations, types or counts */
  KOLO_ERROR_ABORTED = 4,          /* a rank aborted, or a failure elsewhere ended the job */
  KOLO_ERROR_UNAVAILABLE = 5,      /* this build or machine lacks a transport, device or port */
  KOLO_ERROR_PROTOCOL = 6,         /* a peer sent bytes that kolo never sends */
  KOLO_ERROR_SYSTEM = 7,           /* the operating system refused */
  KOLO_ERROR_INVALID_ARGUMENT = 8, /* a wrong argument here; nothing was sent */
  KOLO_ERROR_OUT_OF_MEMORY = 9,    /* here, or on rank `peer` during an operation */
  KOLO_ERROR_OTHER = 10,           /* a failure without a code of its own */
  KOLO_RESULT_RANGE = 0x7fffffff   /* no result; makes the enum as wide as int, here and below */
} kolo_result;

#define KOLO_NO_PEER (-1)

typedef struct kolo_failure {
  kolo_result result;
  int peer;         /* the job's rank that caused it, or KOLO_NO_PEER */
  const char* text; /* rank, operation, peer, time, and what to do; empty if result is KOLO_OK */
} kolo_failure;

typedef struct kolo_communicator kolo_communicator;

/* The last failure of this communicator or of its work handles, in any thread. With null: the last
 * failure of any function that this thread called. `text` is valid until this thread calls
 * kolo_last_failure() again. */
KOLO_C_API kolo_failure kolo_last_failure(const kolo_communicator* communicator);

/* Name of a result in messages: "peer lost", "deadline". */
KOLO_C_API const char* kolo_result_name(kolo_result result);

/* --- elements and reductions (rounding, overflow and NaN: collectives/element.h) --- */

typedef enum kolo_type {
  KOLO_FLOAT32 = 0,
  KOLO_FLOAT64 = 1,
  KOLO_BFLOAT16 = 2,
  KOLO_INT32 = 3,
  KOLO_INT64 = 4,
  KOLO_FLOAT16 = 5,
  KOLO_FLOAT8_E4M3 = 6,
  KOLO_FLOAT8_E5M2 = 7,
  KOLO_INT8 = 8,
  KOLO_INT16 = 9,
  KOLO_UINT8 = 10,
  KOLO_UINT16 = 11,
  KOLO_UINT32 = 12,
  KOLO_UINT64 = 13,
  KOLO_USER_TYPE = 255, /* elements of kolo_user_op.element_bytes; only with KOLO_USER */
  KOLO_TYPE_RANGE = 0x7fffffff
} kolo_type;

typedef enum kolo_op {
  KOLO_SUM = 0,
  KOLO_AVERAGE = 1,
  KOLO_MIN = 2,
  KOLO_MAX = 3,
  KOLO_PRODUCT = 4,
  KOLO_BIT_AND = 5, /* integers only */
  KOLO_BIT_OR = 6,
  KOLO_BIT_XOR = 7,
  KOLO_SCALED_SUM = 8, /* floats only; the sum of kolo_call.scale times each rank's elements */
  KOLO_USER = 9,       /* kolo_call.user_op */
  KOLO_OP_RANGE = 0x7fffffff
} kolo_op;

/* Size of an element in bytes; 0 for an unknown type and for KOLO_USER_TYPE. */
KOLO_C_API size_t kolo_type_bytes(kolo_type type);

/* Reduction by a function of the caller, as in MPI_Op_create. It must be the same on every rank. */
typedef struct kolo_user_op {
  size_t size;
  size_t element_bytes; /* 1 to 65535 */
  /* Sets out[i] = left[i] op right[i] for all i below `count`; op is associative. `out` may be
   * `left` or `right`. A result other than 0 fails the operation on all ranks. The thread that
   * makes progress calls it; it must not wait for an operation. */
  int (*combine)(void* context, void* out, const void* left, const void* right, size_t count);
  void* context;          /* must live until the operation is done */
  int is_not_commutative; /* `left` is then from lower ranks than `right` */
  uint16_t tag;           /* identifies the function when ranks compare their calls */
} kolo_user_op;

/* --- options --- */

typedef enum kolo_reproducibility {
  KOLO_FAST = 0,      /* the fastest algorithm here; another run may give other bits */
  KOLO_ORDERED = 1,   /* the same bits in every run with the same ranks, counts and transport */
  KOLO_INVARIANT = 2, /* the bits of ((x0 op x1) op x2) ... with every algorithm and transport */
  KOLO_REPRODUCIBILITY_RANGE = 0x7fffffff
} kolo_reproducibility;

/* Options of a communicator. Null, or 0 in a field: the default. */
typedef struct kolo_options {
  size_t size;
  const char* transport; /* "auto", or a name such as "tcp", "shm", "shm+tcp" */
  const char* name;      /* identifies this communicator in the job's store; default "world" */
  int64_t timeout_ms;    /* of each operation and of the setup; 0: KOLO_TIMEOUT_MS, or 30 s */
  size_t segment_bytes;  /* the same on every rank; 0: the transport's choice */
  const char* host_id;   /* simulates several hosts on one machine */
  int progress_thread;   /* start a thread that drives asynchronous operations */
  kolo_reproducibility reproducibility; /* the same on every rank */
  const char* tuning;                   /* file with measured choices; only rank 0 reads it */
  int profile;                          /* measure steps, for kolo_get_step_profile() */
  const char* timeline;                 /* "FILE.json": steps are written to FILE.RANK.json */
  /* Receives warnings and errors that no function returns, such as an unknown setting or a failed
   * write of the timeline. Called from threads that use the communicator; must not call functions
   * of kolo. Null: standard error. */
  void (*log)(void* context, const char* line);
  void* log_context; /* must outlive the communicator and its groups */
  /* The caller's allocator, for memory in which an operation keeps partial results. kolo's other
   * memory does not come from it, such as buffers that other processes map. `allocate` returns null
   * if it has no memory: then the operation fails with KOLO_ERROR_OUT_OF_MEMORY. `alignment` is a
   * power of 2. Threads that make progress call both functions. Set both, or none: then C++'s
   * operator new is used. */
  void* (*allocate)(void* context, size_t bytes, size_t alignment);
  void (*deallocate)(void* context, void* memory, size_t bytes, size_t alignment);
  void* memory_context; /* must outlive the communicator and its groups */
} kolo_options;

/* Options of one call. Null, or 0 in a field: the default. Algorithm and segment length must be
 * the same on every rank. */
typedef struct kolo_call {
  size_t size;
  const char* algorithm; /* a name of kolo_algorithm_name(); null: the planner's choice */
  size_t segment_bytes;
  int64_t timeout_ms;          /* from the call to the end; 0: the communicator's */
  const kolo_user_op* user_op; /* for KOLO_USER; copied */
  double scale;                /* for KOLO_SCALED_SUM: this rank's factor */
  int is_persistent;           /* only plan the operation; kolo_start() runs it. Needs `work` */
} kolo_call;

typedef struct kolo_work kolo_work;

/* --- communicators --- */

typedef struct kolo_job_store kolo_job_store; /* kolo_store.h */

/* Makes the communicator of the job. Collective over all `size` ranks that share the store. The
 * communicator keeps the store alive: the handle may be freed. Free with kolo_free(). */
KOLO_C_API kolo_result kolo_create(const kolo_options* options, int rank, int size,
                                   const kolo_job_store* store, kolo_communicator** made);

/* Takes rank, size and store from the launcher: kolo-run, mpirun, srun, torchrun, Kubernetes, or
 * RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT. */
KOLO_C_API kolo_result kolo_create_from_environment(const kolo_options* options,
                                                    kolo_communicator** made);

/* All-gather of the caller. `mine` has `bytes` bytes, the same number on every rank. `all` receives
 * the bytes of all ranks, in the order of ranks. Returns 0, or another value for a failure. */
typedef int (*kolo_all_gather_function)(void* context, const void* mine, size_t bytes, void* all);

/* Bootstrap for programs that can communicate already, such as MPI programs. It calls `all_gather`
 * once. On rank 0 a thread serves the job's store at a free port. To avoid thread and port, call
 * kolo_create() with kolo_store_from_functions(). */
KOLO_C_API kolo_result kolo_create_by_all_gather(const kolo_options* options, int rank, int size,
                                                 kolo_all_gather_function all_gather, void* context,
                                                 kolo_communicator** made);

/* Frees the communicator. Operations in flight then fail on all ranks: call kolo_wait() first.
 *
 * Calls of other threads on it or on its works may run meanwhile. kolo_free() waits until they have
 * returned. Those that wait for peers fail with KOLO_ERROR_ABORTED, "the communicator was freed
 * during this call"; a call that is about to issue an operation is refused. A call that begins
 * before kolo_free() returns is refused with KOLO_ERROR_INVALID_ARGUMENT. After it has returned,
 * the handle must not be used. kolo_free() may be called in a callback of kolo_when_done(). There
 * it waits for no call: the last call that runs frees the communicator when it returns. */
KOLO_C_API void kolo_free(kolo_communicator* communicator);

/* Group of all ranks with the same `color`, ordered by `key`, then by rank. Collective over all
 * ranks. A rank with a color below 0 joins no group, and gets null. */
KOLO_C_API kolo_result kolo_split(kolo_communicator* communicator, int color, int key,
                                  kolo_communicator** made);
/* A communicator of the same ranks. Operations of the two run independently. Collective. */
KOLO_C_API kolo_result kolo_duplicate(kolo_communicator* communicator, kolo_communicator** made);
/* A communicator of the listed ranks, in that order. Collective over these ranks only. */
KOLO_C_API kolo_result kolo_subset(kolo_communicator* communicator, const int* ranks, int count,
                                   kolo_communicator** made);

/* This rank's number, from 0, and the number of ranks. -1 and 0 if the communicator is null. */
KOLO_C_API int kolo_rank(const kolo_communicator* communicator);
KOLO_C_API int kolo_size(const kolo_communicator* communicator);

/* --- collectives: call them on every rank, in the same order ---
 *
 * If `work` is null, the call returns when the operation is done. Else the call only issues the
 * operation, and *work is its handle; free it with kolo_work_free(). */

/* out = the reduction of all ranks' `in`, the same bits on every rank. */
KOLO_C_API kolo_result kolo_all_reduce(kolo_communicator* communicator, const void* in, void* out,
                                       size_t count, kolo_type type, kolo_op op,
                                       const kolo_call* call, kolo_work** work);
/* `chunk` gets this rank's chunk of the reduction of `all`. */
KOLO_C_API kolo_result kolo_reduce_scatter(kolo_communicator* communicator, const void* all,
                                           void* chunk, size_t count, kolo_type type, kolo_op op,
                                           const kolo_call* call, kolo_work** work);
/* `all` gets the chunks of all ranks. */
KOLO_C_API kolo_result kolo_all_gather(kolo_communicator* communicator, const void* chunk,
                                       void* all, size_t count, kolo_type type,
                                       const kolo_call* call, kolo_work** work);
/* Copies the root's `data` to all other ranks. */
KOLO_C_API kolo_result kolo_broadcast(kolo_communicator* communicator, void* data, size_t count,
                                      kolo_type type, int root, const kolo_call* call,
                                      kolo_work** work);
/* `out` of the root gets the reduction; other ranks' `out` is ignored. */
KOLO_C_API kolo_result kolo_reduce(kolo_communicator* communicator, const void* in, void* out,
                                   size_t count, kolo_type type, kolo_op op, int root,
                                   const kolo_call* call, kolo_work** work);
/* `all` of the root gets the chunks of all ranks; other ranks' `all` is ignored. */
KOLO_C_API kolo_result kolo_gather(kolo_communicator* communicator, const void* chunk, void* all,
                                   size_t count, kolo_type type, int root, const kolo_call* call,
                                   kolo_work** work);
/* `chunk` gets this rank's chunk of the root's `all`; other ranks' `all` is ignored. */
KOLO_C_API kolo_result kolo_scatter(kolo_communicator* communicator, const void* all, void* chunk,
                                    size_t count, kolo_type type, int root, const kolo_call* call,
                                    kolo_work** work);
/* `in` holds an equal share for each rank; `out` receives one share from each rank. `count` is the
 * length of `in`, a multiple of the size. */
KOLO_C_API kolo_result kolo_all_to_all(kolo_communicator* communicator, const void* in, void* out,
                                       size_t count, kolo_type type, const kolo_call* call,
                                       kolo_work** work);
/* out = the reduction of `in` of rank 0 to this rank, inclusive. */
KOLO_C_API kolo_result kolo_scan(kolo_communicator* communicator, const void* in, void* out,
                                 size_t count, kolo_type type, kolo_op op, const kolo_call* call,
                                 kolo_work** work);
/* The same without this rank's `in`. Rank 0's `out` is not written. */
KOLO_C_API kolo_result kolo_exclusive_scan(kolo_communicator* communicator, const void* in,
                                           void* out, size_t count, kolo_type type, kolo_op op,
                                           const kolo_call* call, kolo_work** work);
/* Waits until every rank has called it. */
KOLO_C_API kolo_result kolo_barrier(kolo_communicator* communicator, const kolo_call* call,
                                    kolo_work** work);

/* --- shares of any length: counts[r] elements for rank r, packed one after another in `all` ---
 *
 * `counts` has an entry for each rank, and is copied. Gather and scatter need `counts` and `all` at
 * the root only. In these two, every rank passes the length of its own share as `share_count`. */

/* As kolo_reduce_scatter(); `all` has the sum of all counts as its length. */
KOLO_C_API kolo_result kolo_reduce_scatter_v(kolo_communicator* communicator, const void* all,
                                             void* share, const size_t* counts, kolo_type type,
                                             kolo_op op, const kolo_call* call, kolo_work** work);
/* As kolo_all_gather(). Every rank passes the same counts, as in kolo_reduce_scatter_v(). */
KOLO_C_API kolo_result kolo_all_gather_v(kolo_communicator* communicator, const void* share,
                                         void* all, const size_t* counts, kolo_type type,
                                         const kolo_call* call, kolo_work** work);
/* As kolo_gather(); a share whose length differs from its count is KOLO_ERROR_MISMATCH. */
KOLO_C_API kolo_result kolo_gather_v(kolo_communicator* communicator, const void* share,
                                     size_t share_count, void* all, const size_t* counts,
                                     kolo_type type, int root, const kolo_call* call,
                                     kolo_work** work);
/* As kolo_scatter(), with the same check. */
KOLO_C_API kolo_result kolo_scatter_v(kolo_communicator* communicator, const void* all,
                                      const size_t* counts, void* share, size_t share_count,
                                      kolo_type type, int root, const kolo_call* call,
                                      kolo_work** work);
/* `in` holds gives[p] elements for rank p; `out` gets gets[p] from rank p. Not in place. */
KOLO_C_API kolo_result kolo_all_to_all_v(kolo_communicator* communicator, const void* in,
                                         const size_t* gives, void* out, const size_t* gets,
                                         kolo_type type, const kolo_call* call, kolo_work** work);

/* --- messages: matched in order between two ranks; other ranks take no part --- */

/* Sends a message. The operation is done once `data` may be changed: the message may still be on
 * its way. If all ranks send before they receive, they wait for each other when messages are long:
 * use kolo_send_receive(). */
KOLO_C_API kolo_result kolo_send(kolo_communicator* communicator, const void* data, size_t count,
                                 kolo_type type, int to, const kolo_call* call, kolo_work** work);
/* Receives the next message of rank `from`. Its count and type must be those of the sender. */
KOLO_C_API kolo_result kolo_receive(kolo_communicator* communicator, void* data, size_t count,
                                    kolo_type type, int from, const kolo_call* call,
                                    kolo_work** work);
/* Both at once, as MPI_Sendrecv; no work handle. */
KOLO_C_API kolo_result kolo_send_receive(kolo_communicator* communicator, const void* sent,
                                         size_t sent_count, int to, void* received,
                                         size_t received_count, int from, kolo_type type,
                                         const kolo_call* call);

/* --- operations in flight --- */

/* Sets *is_done to 1 if the operation has ended, also by failure. Makes progress; does not wait. */
KOLO_C_API kolo_result kolo_test(kolo_work* work, int* is_done);
/* Waits until the operation has ended, and returns its result. May be called again. */
KOLO_C_API kolo_result kolo_wait(kolo_work* work);
/* Waits at most `timeout_ms`. After this time it returns KOLO_ERROR_DEADLINE with KOLO_NO_PEER, and
 * the operation continues. */
KOLO_C_API kolo_result kolo_wait_for(kolo_work* work, int64_t timeout_ms);
/* Waits until one of `count` operations of one communicator has ended; *index is its position in
 * `works`. Null entries are skipped. timeout_ms below 0: no limit. */
KOLO_C_API kolo_result kolo_wait_any(kolo_work* const* works, size_t count, int64_t timeout_ms,
                                     size_t* index);
/* Calls `callback` when the operation ends, on the thread that completes it. If it has ended
 * already, this function calls `callback`. `failure` is null on success, and valid during the
 * callback. The callback may issue operations, but must not wait for one. */
typedef void (*kolo_done_function)(void* context, const kolo_failure* failure);
KOLO_C_API kolo_result kolo_when_done(kolo_work* work, kolo_done_function callback, void* context);
/* Runs a persistent operation once. Call it in the same order on every rank. */
KOLO_C_API kolo_result kolo_start(kolo_work* work);
/* Frees the handle. Does not cancel the operation, and does not wait for it. */
KOLO_C_API void kolo_work_free(kolo_work* work);

/* Advances the operations in flight without waiting. *is_active is 1 if any remain; may be null. */
KOLO_C_API kolo_result kolo_progress(kolo_communicator* communicator, int* is_active);

/* Descriptor for an event loop: it becomes readable (POLLIN) when kolo_progress() has work to do.
 * Do not read from it or close it. It is valid as long as the communicator. kolo_progress() returns
 * the job's failure even if nothing is in flight. A communicator with a progress thread returns
 * KOLO_ERROR_INVALID_ARGUMENT. */
KOLO_C_API kolo_result kolo_descriptor(kolo_communicator* communicator, int* descriptor);

/* Fails the job on all ranks. `reason` becomes the cause, unless the job has failed already. */
KOLO_C_API kolo_result kolo_abort(kolo_communicator* communicator, const char* reason);
/* The same for a failure that the caller has detected. `result` is its kind, one with a code of its
 * own. `peer` is the rank of this communicator that caused it, or KOLO_NO_PEER. */
KOLO_C_API kolo_result kolo_abort_for(kolo_communicator* communicator, kolo_result result, int peer,
                                      const char* reason);
/* KOLO_OK, or the job's failure if this rank knows of one. Waits for no peer. */
KOLO_C_API kolo_result kolo_check(kolo_communicator* communicator);

/* --- memory --- */

/* Allocates zeroed, page-aligned memory that peers of the same host can map: shm sends from it
 * without a copy. Not collective. Free it with kolo_release() after the operations that use it. It
 * may outlive the communicator. */
KOLO_C_API kolo_result kolo_allocate(kolo_communicator* communicator, size_t bytes, void** memory);
/* Frees memory of kolo_allocate(). */
KOLO_C_API void kolo_release(void* memory);

/* First element and length of chunk `rank`, if `count` elements are cut into `size` chunks. */
KOLO_C_API size_t kolo_chunk_begin(size_t count, int size, int rank);
KOLO_C_API size_t kolo_chunk_count(size_t count, int size, int rank);

#ifdef __cplusplus
}
#endif
