/* Stores of the C interface: small key-value tables by which the ranks of a job find each other. A
 * store holds the ranks' addresses and the job's first failure (transports/rendezvous.h).
 *
 * Free a store with kolo_store_free(), also while communicators use it.
 */
#pragma once

#include "kolo.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Store for ranks that are threads of this process. */
KOLO_C_API kolo_result kolo_store_local(kolo_job_store** made);

/* Store in a file that every rank can open. It is made if absent; the last of `size` ranks removes
 * it. It needs no thread and no socket. timeout_ms 0: 30 s, here and below. */
KOLO_C_API kolo_result kolo_store_open_file(const char* path, int size, int64_t timeout_ms,
                                            kolo_job_store** made);

/* Connection to a store that kolo_serve_store() serves. Retries until the timeout. */
KOLO_C_API kolo_result kolo_store_connect(const char* host, uint16_t port, int64_t timeout_ms,
                                          kolo_job_store** made);

/* Server of a TCP store. Its thread runs until kolo_store_server_free(), which waits up to 5 s for
 * the ranks to leave. `host` null: listen on all addresses. `port` 0: the kernel chooses one.
 * `size`: number of ranks; 0: unknown. */
typedef struct kolo_store_server kolo_store_server;
KOLO_C_API kolo_result kolo_serve_store(const char* host, uint16_t port, int size,
                                        kolo_store_server** made);
/* The port on which it listens, for kolo_store_connect(). */
KOLO_C_API uint16_t kolo_store_server_port(const kolo_store_server* server);
/* Ends the server, after the ranks have left or 5 s have passed. */
KOLO_C_API void kolo_store_server_free(kolo_store_server* server);

/* Key-value store of the caller, such as torch.distributed's Store or etcd. Keys are printable
 * text, values any bytes, up to 1 MiB. Each function returns 0, or another value for a failure, and
 * may be called from several threads at once. Two rules must hold across all ranks:
 * - a value that set() has stored is found by every later get();
 * - add() is atomic, and a counter starts at 0. kolo never uses one key for a value and a counter.
 * kolo polls with get(), so no call blocks for long. It looks for a failure of the job ten times a
 * second. Such a store cannot detect a dead rank; only the transport's connections can. */
typedef struct kolo_store_functions {
  size_t size;
  int (*set)(void* context, const char* key, const void* value, size_t bytes);
  /* Sets *found to 0 if the key has no value. Else sets it to 1 and calls take(taker, value, bytes)
   * once. Must not wait until the key is set. */
  int (*get)(void* context, const char* key, int* found,
             void (*take)(void* taker, const void* value, size_t bytes), void* taker);
  /* Adds to a counter; *sum is the new value. */
  int (*add)(void* context, const char* key, int64_t delta, int64_t* sum);
  /* Removes a value or a counter; null: never removed. */
  int (*remove)(void* context, const char* key);
  /* Called when no communicator or handle uses the store any more; may be null. */
  void (*free)(void* context);
  void* context;
  const char* name; /* for messages: "the store of torch.distributed"; null: "the caller's store" */
} kolo_store_functions;

/* Store over the functions; copies the struct. If several jobs use one key-value store, also one
 * after another, put a name of the job before each key. A job that has failed leaves its keys, and
 * a later job with the same keys fails with a text that says so. If this call fails, it does not
 * call `free`. */
KOLO_C_API kolo_result kolo_store_from_functions(const kolo_store_functions* functions,
                                                 kolo_job_store** made);

/* Frees the handle. Communicators that use the store keep it alive. */
KOLO_C_API void kolo_store_free(kolo_job_store* store);

#ifdef __cplusplus
}
#endif
