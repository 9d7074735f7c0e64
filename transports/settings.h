// All settings that the libraries read from the environment, in one struct. Nothing else reads the
// environment.
//
// The defaults suit almost all jobs. A value that cannot be read is std::invalid_argument, with the
// variable, the value and the allowed values.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kolo::inline v0 {

enum class WaitKind : std::uint8_t { kAuto, kSpin, kYield, kBlock };

std::string_view to_string(WaitKind kind);

// What a launcher states about the job, so that the ranks meet without KOLO_STORE and MASTER_ADDR.
struct Launcher {
  enum class Kind : std::uint8_t {
    kUnknown,     // none, or one that sets RANK and WORLD_SIZE itself
    kTorchrun,    // RANK and WORLD_SIZE, with TORCHELASTIC_USE_AGENT_STORE
    kOpenMpi,     // mpirun of Open MPI
    kMpich,       // mpiexec of MPICH, MVAPICH and Intel MPI; srun --mpi=pmi2
    kSlurm,       // srun
    kKubernetes,  // an indexed Job
  };
  Kind kind = Kind::kUnknown;
  std::string job;          // name of the job; it differs among jobs of one host
  std::string node_list;    // SLURM_STEP_NODELIST
  int nodes = 0;            // SLURM_STEP_NUM_NODES; 0: unknown
  int pmi_descriptor = -1;  // PMI_FD
  std::string folder;       // of Open MPI's session on this host, removed with the job
  std::string pmix_prefix;  // PMIX_PREFIX: where Open MPI's own libpmix is installed
};

struct Settings {
  // --- rank and size: set by launchers (kolo-run, torchrun). RANK and WORLD_SIZE are both set or
  // both unset. If unset, the variables of MPI launchers and srun count, if they state several
  // ranks. RANK alone may be missing in a pod of an indexed Job of Kubernetes ---
  std::optional<int> rank;                   // RANK
  std::optional<int> size;                   // WORLD_SIZE
  std::optional<int> local_rank;             // LOCAL_RANK
  std::optional<int> local_size;             // LOCAL_WORLD_SIZE
  std::string size_variable = "WORLD_SIZE";  // the variable that stated `size`

  Launcher launcher;  // the launcher that stated them

  // --- rendezvous ---
  // KOLO_STORE: tcp://host:port, tcp://[v6]:port or file:PATH. No rank serves it.
  std::string store;
  // MASTER_ADDR, MASTER_PORT: where rank 0 serves the store, if KOLO_STORE is not set. An IPv6
  // address may be in brackets; they are removed here.
  std::string master_host;
  std::uint16_t master_port = 0;

  // --- waiting ---
  // KOLO_TIMEOUT_MS: default timeout of every operation, with the connections that it makes, and of
  // the rendezvous.
  std::chrono::milliseconds timeout{30'000};
  WaitKind wait = WaitKind::kAuto;       // KOLO_WAIT: auto, spin, yield or block
  std::chrono::microseconds spin{2000};  // KOLO_SPIN_US: how long to spin or yield before sleeping

  // --- all transports ---
  std::string transport;  // KOLO_TRANSPORT: replaces "auto"; empty: the best that all ranks have
  // KOLO_HOST_ID: the simulated host of this process on its machine. Processes with different names
  // share no memory. Empty: all are on one host. It cannot join two machines to one host.
  std::string host_id;
  // KOLO_SEGMENT_BYTES: longest segment; 0: the transport's default. The same on all ranks.
  std::size_t segment_bytes = 0;

  // --- decorators: see transports/decorators/{shape,fault,trace}.h ---
  std::string shape;  // KOLO_SHAPE: 1Gbit,1ms: the simulated network; the same on all ranks
  std::string fault;  // KOLO_FAULT: die@rank=1,segment=100: injected faults
  std::string trace;  // KOLO_TRACE: PATH: a timeline of every rank's segments, PATH-rankN.json

  // --- collectives ---
  // KOLO_TUNING: a table of measured algorithms, as kolo-bench tune writes it. Rank 0 reads it.
  std::string tuning;
  // KOLO_TIMELINE: FILE.json: a timeline of the steps of every operation, FILE.RANK.json.
  std::string timeline;

  // --- shm ---
  // KOLO_SHM_SINGLE_COPY: from this length on, the kernel may copy a segment between processes, if
  // that is faster; 0: never.
  std::size_t shm_single_copy_bytes = 8 * 1024;

  // --- tcp ---
  // KOLO_TCP_HOST: the address to listen on and publish, or a selection of the addresses to
  // publish: eth0 and others that begin so; =eth0; 10.9.0.0/24; ^docker,virbr. Empty: all.
  std::string tcp_host;
  // KOLO_TCP_ADVERTISE: addresses or names to publish instead, separated by commas, where peers
  // reach this host by address translation. The ports stay the same: use KOLO_TCP_PORTS.
  std::string tcp_advertise;
  // KOLO_TCP_PORTS=LOW-HIGH: ports to listen on; unset: the kernel chooses.
  std::uint16_t tcp_port_low = 0;
  std::uint16_t tcp_port_high = 0;
  // KOLO_TCP_CONGESTION: reno, cubic, bbr, ...; "system": the machine's. Empty: reno or cubic
  // within a host, if the kernel has one of them, else the machine's.
  std::string tcp_congestion;
  // KOLO_TCP_BUFFERS: bytes of each socket's buffers, per direction. 0: the kernel's, which grow
  // with the network's delay and rate; a fixed size does not grow.
  int tcp_buffer_bytes = 0;
  // KOLO_TCP_LANES: connections per pair of ranks; the same on all ranks. More help if one
  // connection is slower than the network. They cost 16 bytes and a system call per chunk.
  int tcp_lanes = 1;
  // KOLO_HELLO_TIMEOUT_MS: an unknown client without a hello in this time is dropped.
  std::chrono::milliseconds hello_timeout{5000};

  // --- device memory ---
  // KOLO_CUDA_DEVICE: the device of this rank, in the driver's numbering. Unset: the device of the
  // context that is current when the rank joins, else chosen by LOCAL_RANK.
  std::optional<int> cuda_device;

  // --- ucx ---
  // UCX_RNDV_THRESH, a variable of UCX, is set: UCX decides which segments use its rendezvous.
  bool ucx_asks_as_told = false;

  // --- ofi ---
  // KOLO_OFI_PROVIDER: libfabric's shm, tcp, sockets, ...; empty: tcp, else sockets. The same on
  // all ranks.
  std::string ofi_provider;
};

// The settings of the environment, read anew on every call.
Settings read_settings();

// The same from any table of variables, for tests.
using Variables = std::function<std::optional<std::string>(const char* name)>;
Settings read_settings(const Variables& variables);

// An unknown KOLO_ variable: named like a setting, but read by no part of kolo.
struct UnknownSetting {
  std::string name;
  std::string meant;  // the known setting with the most similar name; empty: none is similar
};

// The environment's variables that begin with KOLO_, are not empty, and are known to no part of
// kolo. Sorted by name.
std::vector<UnknownSetting> unknown_settings();

// The same for any variables, each NAME=VALUE.
std::vector<UnknownSetting> unknown_settings(std::span<const std::string> variables);

// "KOLO_SEGMENT_BYTE is not a setting of kolo, and nothing reads it; did you mean
// KOLO_SEGMENT_BYTES?"
std::string describe(const UnknownSetting& unknown);

// Whether the user has set a variable of another library ("UCX_..."), which kolo would set
// otherwise.
bool is_in_environment(const char* name);

// Sets the variable `name` from a program's flag, for this process and its child processes. Not
// while other threads run.
void set_setting(const char* name, const std::string& value);

// Whether the text is a valid host name for KOLO_HOST_ID: 1 to 64 visible characters.
bool is_host_id(std::string_view text);

}  // namespace kolo::inline v0
