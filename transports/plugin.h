// Transports from outside: the table of plain C functions by which a library that was built by
// somebody else, at another time and with another compiler, moves kolo's bytes. C99 and C++.
//
// The library has one symbol,
//
//     const kolo_plugin* kolo_transport_plugin(void);
//
// and is named by its path wherever a transport is named: KOLO_TRANSPORT=/path/libx.so, or
// --transport ./libx.so. A program that has the table itself registers it
// (transports/plugin/registration.h). The guide is installed as share/doc/kolo/transports/GUIDE.md,
// and as share/kolo/example a whole transport in one file of C. What the words mean (channel,
// segment, slot, view, credit, answer) and what must hold is said in transports/transport.h: this
// table is that contract, function by function.
//
// In CMake: find_package(kolo), and target_link_libraries(mine PRIVATE kolo::plugin).
//
// send, receive and completed are all that moves data: kolo makes slots, views and credit of them.
// [optional] functions may be null.
//
// kolo checks the arguments before it calls: a segment is no longer than segment_bytes, and nothing
// follows quiesce but destroy. It counts segments and bytes itself.
//
// Threading: as in transport.h: one thread at a time for a transport and its channels, any thread
// for the store. The table and what it points to live as long as the
// process: a library that has been loaded is never unloaded. Nothing may be thrown through it.
//
// Versions: `version` says what the fields mean; another one is refused. Within one the structures
// only grow at their ends, and each begins with its size (`size` in bytes): who fills one in says
// how much there is, who reads one takes what lies beyond as null.
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define KOLO_PLUGIN_VERSION 2u
#define KOLO_PLUGIN_SYMBOL "kolo_transport_plugin"

// The transport's own: kolo only hands them back.
typedef struct kolo_transport kolo_transport;
typedef struct kolo_channel kolo_channel;

typedef enum kolo_status {
  KOLO_FAILED = -1,  // what is in the kolo_error; the channel, or the transport, is then dead
  KOLO_NOT_NOW = 0,  // nothing was done: asked again after progress
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
  KOLO_SYSTEM = 6
} kolo_error_code;

// kolo's memory, to be filled in before KOLO_FAILED is returned.
typedef struct kolo_error {
  size_t size;
  int32_t code;     // kolo_error_code
  int32_t peer;     // the rank that it came from, or -1
  char text[1024];  // the reason and the way out, ended by 0; kolo adds rank, peer and transport
} kolo_error;

// How far apart ranks may be; kolo refuses ranks that are farther.
typedef enum kolo_reach { KOLO_PROCESS = 0, KOLO_HOST = 1, KOLO_NETWORK = 2 } kolo_reach;

// A table of bytes that all ranks of the job see (transports/rendezvous.h), for addresses. Lives as
// long as the transport. Keys are the transport's own, and each is set once. Times are nanoseconds
// of CLOCK_MONOTONIC. What fails has filled in the error as its caller can return it.
typedef struct kolo_store kolo_store;
struct kolo_store {
  size_t size;
  kolo_status (*set)(const kolo_store* store, const char* key, const void* value, size_t bytes,
                     kolo_error* error);
  // Copies at most `room` bytes, and says how many there are; try_get: KOLO_NOT_NOW where there is
  // none. get waits: KOLO_FAILED after the deadline, and where the job has failed meanwhile.
  kolo_status (*try_get)(const kolo_store* store, const char* key, void* into, size_t room,
                         size_t* bytes, kolo_error* error);
  kolo_status (*get)(const kolo_store* store, const char* key, int64_t deadline_ns, void* into,
                     size_t room, size_t* bytes, kolo_error* error);
  // Every rank gives `bytes` bytes and gets those of all, in order of rank. The error names who
  // did not come "to `purpose`".
  kolo_status (*gather)(const kolo_store* store, const char* key, const void* value, size_t bytes,
                        int64_t deadline_ns, const char* purpose, void* into, kolo_error* error);
  // KOLO_FAILED, with its text, once the job has failed anywhere: to be asked in every long wait.
  kolo_status (*check)(const kolo_store* store, kolo_error* error);
  // Readable when check() may have news; -1 where only asking tells.
  int (*descriptor)(const kolo_store* store);
};

// What a transport is made from. Lives during make alone; the store longer.
typedef struct kolo_plugin_request {
  size_t size;
  int32_t rank;
  int32_t ranks;         // how many there are
  int32_t local_ranks;   // of them on this machine; 0: unknown
  int64_t deadline_ns;   // for finding the others, of CLOCK_MONOTONIC
  size_t segment_bytes;  // asked for as the longest segment, a multiple of 64; 0: the transport's
                         // own choice
  const char* host_id;   // as which host this rank counts; empty: as its machine
  const char* options;   // the transport's own settings: what follows the ? in /path/libx.so?...
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
  // Collective over the ranks. Publishes its address once it listens there, and waits for others
  // with the deadline and the store's check.
  kolo_status (*make)(const kolo_plugin_request* request, kolo_transport** made, kolo_error* error);
  void (*destroy)(kolo_transport* transport);
  // Not to oneself; the same at every call; it lives as long as the transport.
  kolo_channel* (*channel)(kolo_transport* transport, int peer);
  // Moves what can be moved, without blocking. The losses of peers belong to their channels.
  kolo_status (*progress)(kolo_transport* transport, kolo_error* error);
  // Afterwards nothing touches the caller's memory.
  void (*quiesce)(kolo_transport* transport);
  // [optional, all three or none] Sleep. arm: KOLO_NOT_NOW where something has happened since it
  // was last asked; after KOLO_DONE the descriptor is polled for input, and then disarmed.
  // Where descriptor is -1 nobody arms: who waits naps instead.
  int (*descriptor)(kolo_transport* transport);
  kolo_status (*arm)(kolo_transport* transport, kolo_error* error);
  void (*disarm)(kolo_transport* transport);

  // --- channels ---

  // Takes `data`, never empty, as the next segment. The memory stays as it is until the segment is
  // completed.
  kolo_status (*send)(kolo_channel* channel, const void* data, size_t bytes, kolo_error* error);
  // The next segment, whole. After KOLO_NOT_NOW it is asked again with the same memory, which may
  // be written to in between.
  kolo_status (*receive)(kolo_channel* channel, void* into, size_t bytes, kolo_error* error);
  // How many of the segments sent so far, in order, need their memory no more.
  kolo_status (*completed)(kolo_channel* channel, uint64_t* segments, kolo_error* error);

  // [optional] The longest segment in bytes, the same on every rank: a multiple of 64, 1 GiB at
  // most. Asked once, if the request names no length; 64 KiB without it.
  size_t (*segment_bytes)(kolo_transport* transport);
} kolo_plugin;

// What the library exports; null: it has none here.
#if defined(__GNUC__)
__attribute__((visibility("default")))
#endif
const kolo_plugin*
kolo_transport_plugin(void);

#ifdef __cplusplus
}
#endif
