/* Stores of the C interface: small tables of strings through which the ranks of a job meet. They
 * carry the addresses of the ranks, and the first failure (transports/rendezvous.h).
 *
 * Free a store with kolo_store_free(). The communicators that use it keep what they need.
 */
#pragma once

#include "kolo.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Store for ranks that are threads of this process. */
KOLO_C_API kolo_result kolo_store_local(kolo_job_store** made);

/* Store in a file that every rank can open; made if absent, and removed by the last rank of `size`.
 * No thread and no socket. timeout_ms 0: 30 s, here and below. */
KOLO_C_API kolo_result kolo_store_open_file(const char* path, int size, int64_t timeout_ms,
                                            kolo_job_store** made);

/* Connection to a store that kolo_serve_store() serves. Retries until the timeout. */
KOLO_C_API kolo_result kolo_store_connect(const char* host, uint16_t port, int64_t timeout_ms,
                                          kolo_job_store** made);

/* Server of a TCP store, in a thread of its own until kolo_store_server_free(). That call waits 5 s
 * at most until the ranks have left. `host` null: all addresses. `port` 0: the kernel chooses.
 * `size`: number of ranks; 0: unknown. */
typedef struct kolo_store_server kolo_store_server;
KOLO_C_API kolo_result kolo_serve_store(const char* host, uint16_t port, int size,
                                        kolo_store_server** made);
KOLO_C_API uint16_t kolo_store_server_port(const kolo_store_server* server);
KOLO_C_API void kolo_store_server_free(kolo_store_server* server);

/* Key-value store of the caller, such as torch.distributed's Store or etcd. Keys are printable
 * text, values any bytes, up to 1 MiB. Each function returns 0, or another value for a failure, and
 * may be called from several threads at once. The rules hold between all ranks:
 * - a value that set() has stored is found by every later get();
 * - add() is atomic. A counter starts at 0, and its keys are not those of set().
 * kolo polls with get(), so that no call blocks for long; it asks for the job's failure ten times a
 * second. The death of a rank is then detected by the transport's connections alone. */
typedef struct kolo_store_functions {
  size_t size;
  int (*set)(void* context, const char* key, const void* value, size_t bytes);
  /* *found is 0 if there is no value. Else calls take(taker, value, bytes) once. Must not wait for
   * the key. */
  int (*get)(void* context, const char* key, int* found,
             void (*take)(void* taker, const void* value, size_t bytes), void* taker);
  /* Adds to a counter; *sum is the new value. */
  int (*add)(void* context, const char* key, int64_t delta, int64_t* sum);
  /* Removes a value or a counter; null: never removed. */
  int (*remove)(void* context, const char* key);
  /* Called when the last user of the store has ended; null: nothing. */
  void (*free)(void* context);
  void* context;
  const char* name; /* for messages: "the store of torch.distributed"; null: "the caller's store" */
} kolo_store_functions;

/* Copies the struct. Two jobs must not share a store: put the job's name before each key if they
 * could. After a failure here `free` is not called. */
KOLO_C_API kolo_result kolo_store_from_functions(const kolo_store_functions* functions,
                                                 kolo_job_store** made);

KOLO_C_API void kolo_store_free(kolo_job_store* store);

#ifdef __cplusplus
}
#endif
