// Interface of transports from outside kolo: a table of plain C functions. The library may be built
// separately, at a different time, with a different compiler. C99 and C++.
//
// The library has one symbol,
//
//     const kolo_plugin* kolo_transport_plugin(void);
//
// and is named by its path wherever a transport is named: KOLO_TRANSPORT=/path/libx.so, or
// --transport ./libx.so. A program that has the table itself registers it
// (transports/plugin/registration.h). The guide is installed as share/doc/kolo/transports/GUIDE.md,
// and a complete transport in one C file as share/kolo/example. transports/transport.h defines the
// words (channel, segment, slot, view, credit, answer) and the contract: this table is that
// contract, function by function.
//
// In CMake: find_package(kolo), and target_link_libraries(mine PRIVATE kolo::plugin).
//
// Only send, receive and completed move data. kolo builds slots, views and credit on them.
// [optional] functions may be null.
//
// kolo checks the arguments before it calls: a segment is no longer than segment_bytes, and only
// destroy follows quiesce. It counts segments and bytes itself.
//
// Threading: as in transport.h: one thread at a time for a transport and its channels, any thread
// for the store. Lifetime: the table and the memory it points to live as long as the process; a
// loaded library is never unloaded. Errors: no exception may leave a function of the table.
//
// Versions: `version` fixes the meaning of the fields; kolo refuses any other version. Within a
// version the structures only grow at their ends. Each begins with its `size` in bytes, set by the
// side that fills it in. The reader takes fields beyond `size` as null.
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define KOLO_PLUGIN_VERSION 2u
#define KOLO_PLUGIN_SYMBOL "kolo_transport_plugin"

// Opaque to kolo; defined by the transport.
typedef struct kolo_transport kolo_transport;
typedef struct kolo_channel kolo_channel;

typedef enum kolo_status {
  KOLO_FAILED = -1,  // the kolo_error is filled in; the channel, or the transport, is then dead
  KOLO_NOT_NOW = 0,  // nothing was done; called again after progress
  KOLO_DONE = 1
} kolo_status;

// As kolo::ErrorCode (transports/error.h).
typedef enum kolo_error_code {
  KOLO_PEER_LOST = 0,
  KOLO_DEADLINE = 1,
  KOLO_MISMATCH = 2,
  KOLO_ABORTED = 3,
  KOLO_UNAVAILABLE = 4,
  KOLO_PROTOCOL = 5,
  KOLO_SYSTEM = 6,
  KOLO_OUT_OF_MEMORY = 7
} kolo_error_code;

// Memory of kolo's. The transport fills it in before it returns KOLO_FAILED.
typedef struct kolo_error {
  size_t size;
  int32_t code;     // kolo_error_code
  int32_t peer;     // the rank that caused it, or -1
  char text[1024];  // the reason and what to do, ended by 0; kolo adds rank, peer and transport
} kolo_error;

// Largest distance of two ranks: threads of a process, processes of a host, or any hosts. kolo
// refuses ranks that are farther apart.
typedef enum kolo_reach { KOLO_PROCESS = 0, KOLO_HOST = 1, KOLO_NETWORK = 2 } kolo_reach;

// Key-value store shared by all ranks of the job (transports/rendezvous.h), for addresses. Lives as
// long as the transport. Its keys are private to this transport, and each is set once. Times are
// nanoseconds of CLOCK_MONOTONIC. A function that fails has filled in the error; the caller may
// return it unchanged.
typedef struct kolo_store kolo_store;
struct kolo_store {
  size_t size;
  kolo_status (*set)(const kolo_store* store, const char* key, const void* value, size_t bytes,
                     kolo_error* error);
  // Copies at most `room` bytes; *bytes is the length of the value. try_get: KOLO_NOT_NOW if there
  // is no value. get waits; KOLO_FAILED after the deadline, or if the job fails meanwhile.
  kolo_status (*try_get)(const kolo_store* store, const char* key, void* into, size_t room,
                         size_t* bytes, kolo_error* error);
  kolo_status (*get)(const kolo_store* store, const char* key, int64_t deadline_ns, void* into,
                     size_t room, size_t* bytes, kolo_error* error);
  // All-gather: every rank gives `bytes` bytes and gets those of all, in order of rank. The error
  // names the ranks that did not come "to `purpose`".
  kolo_status (*gather)(const kolo_store* store, const char* key, const void* value, size_t bytes,
                        int64_t deadline_ns, const char* purpose, void* into, kolo_error* error);
  // KOLO_FAILED, with the job's failure, once any rank has failed. Call it in every long wait.
  kolo_status (*check)(const kolo_store* store, kolo_error* error);
  // Readable when check() may have news; -1: only polling check() tells.
  int (*descriptor)(const kolo_store* store);
};

// Arguments of make. Lives only during make; the store lives longer.
typedef struct kolo_plugin_request {
  size_t size;
  int32_t rank;
  int32_t ranks;         // their number
  int32_t local_ranks;   // number of ranks on this machine; 0: unknown
  int64_t deadline_ns;   // for finding the peers, of CLOCK_MONOTONIC
  size_t segment_bytes;  // requested longest segment, a multiple of 64; 0: the transport's choice
  const char* host_id;   // simulated host of this rank; empty: its machine
  const char* options;   // the transport's own settings: the text behind ? in /path/libx.so?...
  const kolo_store* store;
} kolo_plugin_request;

typedef struct kolo_plugin {
  uint32_t version;  // KOLO_PLUGIN_VERSION
  uint32_t size;     // sizeof(kolo_plugin)
  const char* name;  // one word
  int32_t reach;     // kolo_reach
  uint32_t reserved;

  // --- the transport ---

  // [optional] Why this machine cannot run it; null or empty: it can.
  const char* (*why_unusable)(void);
  // Collective over the ranks. Publishes its address after it listens there, and waits for peers
  // with the deadline and the store's check.
  kolo_status (*make)(const kolo_plugin_request* request, kolo_transport** made, kolo_error* error);
  void (*destroy)(kolo_transport* transport);
  // Never called with this rank as peer. Returns the same channel at every call; it lives as long
  // as the transport.
  kolo_channel* (*channel)(kolo_transport* transport, int peer);
  // Advances transfers without blocking. Lost peers are errors of their channels, not of this call.
  kolo_status (*progress)(kolo_transport* transport, kolo_error* error);
  // Afterwards nothing touches the caller's memory.
  void (*quiesce)(kolo_transport* transport);
  // [optional, all three or none] Sleep. arm: KOLO_NOT_NOW if an event happened since the last
  // call. After KOLO_DONE kolo polls the descriptor for input, then disarms.
  // With the descriptor -1 kolo does not arm; a waiting rank naps.
  int (*descriptor)(kolo_transport* transport);
  kolo_status (*arm)(kolo_transport* transport, kolo_error* error);
  void (*disarm)(kolo_transport* transport);

  // --- channels ---

  // Sends `data`, never empty, as the next segment. The memory stays unchanged until the segment is
  // completed.
  kolo_status (*send)(kolo_channel* channel, const void* data, size_t bytes, kolo_error* error);
  // Receives the next segment completely. After KOLO_NOT_NOW kolo calls again with the same memory;
  // the transport may write there in between.
  kolo_status (*receive)(kolo_channel* channel, void* into, size_t bytes, kolo_error* error);
  // Number of segments, of those sent so far and in order, whose memory is free again.
  kolo_status (*completed)(kolo_channel* channel, uint64_t* segments, kolo_error* error);

  // [optional] The longest segment in bytes, the same on every rank: a multiple of 64, 1 GiB at
  // most. Called once, if the request names no length; 64 KiB without it.
  size_t (*segment_bytes)(kolo_transport* transport);
} kolo_plugin;

// The symbol that the library exports. Null: no transport on this machine.
#if defined(__GNUC__)
__attribute__((visibility("default")))
#endif
const kolo_plugin*
kolo_transport_plugin(void);

#ifdef __cplusplus
}
#endif
