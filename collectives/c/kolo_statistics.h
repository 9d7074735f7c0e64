/* Names, choices, costs and traffic of a communicator of the C interface.
 *
 * A returned string is valid until this thread calls the same function again.
 */
#pragma once

#include "kolo.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The name of the communicator in the job's store: "world", or that of a group. */
KOLO_C_API const char* kolo_name(const kolo_communicator* communicator);
/* The transport that connects its ranks: "shm", "tcp", "shm+tcp". */
KOLO_C_API const char* kolo_transport_name(const kolo_communicator* communicator);
/* Layer that moves the transport's data: libfabric's provider or UCX's transports; else empty. */
KOLO_C_API const char* kolo_carrier(const kolo_communicator* communicator);
/* The timeout of operations that name none. */
KOLO_C_API int64_t kolo_timeout_ms(const kolo_communicator* communicator);
/* Converts `rank` of this communicator to a rank of the job. They differ in groups. */
KOLO_C_API kolo_result kolo_job_rank(const kolo_communicator* communicator, int rank,
                                     int* job_rank);
/* Sets hosts[r] to the number of rank r's host, for all ranks. Hosts are numbered by first rank. */
KOLO_C_API kolo_result kolo_hosts(const kolo_communicator* communicator, int* hosts);

typedef enum kolo_collective {
  KOLO_COLLECTIVE_ALL_REDUCE = 0,
  KOLO_COLLECTIVE_REDUCE_SCATTER = 1,
  KOLO_COLLECTIVE_ALL_GATHER = 2,
  KOLO_COLLECTIVE_BROADCAST = 3,
  KOLO_COLLECTIVE_BARRIER = 4,
  KOLO_COLLECTIVE_PUSH_PULL = 5,
  KOLO_COLLECTIVE_PUSH = 6,
  KOLO_COLLECTIVE_PULL = 7,
  KOLO_COLLECTIVE_REDUCE = 8,
  KOLO_COLLECTIVE_GATHER = 9,
  KOLO_COLLECTIVE_SCATTER = 10,
  KOLO_COLLECTIVE_ALL_TO_ALL = 11,
  KOLO_COLLECTIVE_SCAN = 12,
  KOLO_COLLECTIVE_EXCLUSIVE_SCAN = 13,
  KOLO_COLLECTIVE_MESSAGE = 14,
  KOLO_COLLECTIVE_RANGE = 0x7fffffff
} kolo_collective;

/* Name of algorithm `index` of the collective, from 0; null after the last one. */
KOLO_C_API const char* kolo_algorithm_name(kolo_collective collective, size_t index);

typedef struct kolo_prediction {
  const char* algorithm;
  double time_us;  /* simulated with this job's costs; 0: the only candidate */
  int is_chosen;   /* calls that name no algorithm run it */
  int is_by_table; /* a table of measurements chose it */
} kolo_prediction;

/* Predicts the candidates for a call with `bytes` of data that names no algorithm. Writes at most
 * `room` predictions; *count is the number of candidates. Returns KOLO_ERROR_INVALID_ARGUMENT for
 * lengths and operations that the collective itself does not accept. */
KOLO_C_API kolo_result kolo_predict(const kolo_communicator* communicator,
                                    kolo_collective collective, size_t bytes, kolo_type type,
                                    kolo_op op, kolo_prediction* predictions, size_t room,
                                    size_t* count);

/* Measured costs in microseconds, and microseconds per byte (collectives/costs.h). */
typedef struct kolo_link_costs {
  double latency_us, send_us, receive_us, next_us, send_us_per_byte, receive_us_per_byte;
} kolo_link_costs;
typedef struct kolo_costs {
  kolo_link_costs local;  /* between ranks of one host */
  kolo_link_costs remote; /* between hosts */
  double overhead_us, copy_us_per_byte, reduce_us_per_byte, switch_us;
  int cores; /* per host; 0: one per rank */
} kolo_costs;
/* The costs that the choice of algorithms uses: measured when the job began, or the transport's own
 * constants (kolo_options.reproducibility). */
KOLO_C_API kolo_result kolo_measured_costs(const kolo_communicator* communicator,
                                           kolo_costs* costs);

/* Set `size` before the call; fields that a shorter struct lacks are not written. */
typedef struct kolo_statistics {
  size_t size;
  uint64_t payload_bytes_sent, payload_bytes_received;
  uint64_t header_bytes_sent;
  uint64_t bytes_sent_to_other_hosts; /* payload and headers */
  uint64_t operations;
} kolo_statistics;
/* Traffic of this rank since the communicator was made. */
KOLO_C_API kolo_result kolo_get_statistics(const kolo_communicator* communicator,
                                           kolo_statistics* statistics);

/* Traffic with one peer, and how this rank waited for it. */
typedef struct kolo_peer_statistics {
  size_t size;
  uint64_t bytes_sent, bytes_received, segments_sent, segments_received;
  uint64_t system_calls, connections;
  uint64_t waits, spins, yields, sleeps;
  uint64_t waited_ns;
  const char* transport; /* between the two ranks; empty for this rank itself */
  const char* address;   /* the peer's, as the connection uses it */
} kolo_peer_statistics;
/* The same with rank `peer` alone. */
KOLO_C_API kolo_result kolo_get_peer_statistics(const kolo_communicator* communicator, int peer,
                                                kolo_peer_statistics* statistics);

/* Sum over all steps of one kind; needs kolo_options.profile. Times in microseconds. */
typedef struct kolo_step_profile {
  const char* kind; /* "send", "receive", "reduce", ... */
  uint64_t steps;   /* segments */
  uint64_t bytes;
  double worked_us, waited_us;
} kolo_step_profile;
/* Writes at most `room` rows, one for each kind of step that has occurred; *count is the number of
 * kinds. */
KOLO_C_API kolo_result kolo_get_step_profile(const kolo_communicator* communicator,
                                             kolo_step_profile* rows, size_t room, size_t* count);

/* Writes the timeline (kolo_options.timeline) and the trace (KOLO_TRACE) now. */
KOLO_C_API kolo_result kolo_write_records(kolo_communicator* communicator);

#ifdef __cplusplus
}
#endif
