// Every knob of the libraries that the environment can turn, in one struct. Nothing else reads the
// environment.
//
// The defaults are right for nearly everybody; each knob says what it costs to touch it. An
// unreadable value is std::invalid_argument naming the variable, the value and what it may be.
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

namespace kolo {

enum class WaitKind : std::uint8_t { kAuto, kSpin, kYield, kBlock };

std::string_view to_string(WaitKind kind);

struct Settings {
  // --- who am I: set by launchers (kolo-run, torchrun (which needs KOLO_STORE, too), ...), all or
  // none of the first two; where they are not set, the names of MPI's launchers and of srun for the
  // same, if they say that there are several ranks ---
  std::optional<int> rank;                   // RANK
  std::optional<int> size;                   // WORLD_SIZE
  std::optional<int> local_rank;             // LOCAL_RANK
  std::optional<int> local_size;             // LOCAL_WORLD_SIZE
  std::string size_variable = "WORLD_SIZE";  // that has said so

  // --- where do we meet ---
  std::string
      store;  // KOLO_STORE: tcp://host:port, tcp://[v6]:port or file:PATH; served by somebody else
  std::string master_host;        // MASTER_ADDR: where rank 0 serves, if KOLO_STORE is not set
  std::uint16_t master_port = 0;  // MASTER_PORT

  // --- waiting ---
  // KOLO_TIMEOUT_MS: of every operation, and of finding the others, where the program gives none.
  std::chrono::milliseconds timeout{30'000};
  WaitKind wait = WaitKind::kAuto;       // KOLO_WAIT: auto, spin, yield or block
  std::chrono::microseconds spin{2000};  // KOLO_SPIN_US: how long to spin or yield before sleeping

  // --- all transports ---
  std::string transport;  // KOLO_TRANSPORT: what "auto" means; empty: the best that all ranks have
  // KOLO_HOST_ID: the host as which this process counts on its machine, so that one machine can
  // play several, whose processes then share no memory; empty: all are on one. It cannot make one
  // host of two machines.
  std::string host_id;
  std::size_t segment_bytes =
      0;  // KOLO_SEGMENT_BYTES: longest segment; 0: the transport's default; same on all ranks

  // --- decorators: see transports/decorators/{shape,fault,trace}.h ---
  std::string shape;  // KOLO_SHAPE: 1Gbit,1ms: the network to play; the same on all ranks
  std::string fault;  // KOLO_FAULT: die@rank=1,segment=100: what goes wrong, and when
  std::string trace;  // KOLO_TRACE: PATH: a timeline of every rank's segments, PATH-rankN.json

  // --- collectives ---
  std::string tuning;  // KOLO_TUNING: a table of measured choices, as kolo-bench tune writes it;
                       // read by rank 0

  std::string timeline;  // KOLO_TIMELINE: a file for the steps of every operation on a timeline;
                         // FILE.json becomes FILE.RANK.json

  // --- shm ---
  std::size_t shm_single_copy_bytes =
      8 * 1024;  // KOLO_SHM_SINGLE_COPY: segments that the kernel may copy from process to process,
                 // where that takes less time; 0: none

  // --- tcp ---
  std::string tcp_host;  // KOLO_TCP_HOST: the address to listen on and publish; empty: the one that
                         // reaches the store
  std::uint16_t tcp_port_low =
      0;  // KOLO_TCP_PORTS=LOW-HIGH: ports to listen on; unset: the kernel chooses
  std::uint16_t tcp_port_high = 0;
  std::string tcp_congestion;  // KOLO_TCP_CONGESTION: reno, cubic, bbr, ...; "system": the
                               // machine's; empty: within a host reno or
                               // cubic, where there is one, else the machine's
  int tcp_buffer_bytes = 0;    // KOLO_TCP_BUFFERS: of each socket, each way; 0: the kernel's, which
                               // grow with the network's delay and rate; a fixed size does not
  int tcp_lanes = 1;  // KOLO_TCP_LANES: connections of a pair; more help where one of them is
                      // slower than the network, and cost 16 bytes and a system call a chunk; the
                      // same on all ranks
  std::chrono::milliseconds hello_timeout{
      5000};  // KOLO_HELLO_TIMEOUT_MS: strangers who do not say hello are dropped

  // --- device memory ---
  std::optional<int>
      cuda_device;  // KOLO_CUDA_DEVICE: the device that this rank works on, as the driver numbers
                    // them; unset: that of the context that is current where the rank joins, or
                    // else the one that its LOCAL_RANK comes to

  // --- ucx ---
  bool ucx_asks_as_told = false;  // UCX_RNDV_THRESH, which is UCX's own, is set: it says from where
                                  // on UCX asks before it sends

  // --- ofi ---
  std::string ofi_provider;  // KOLO_OFI_PROVIDER: of libfabric's: shm, tcp, sockets, ...; empty:
                             // tcp, or else sockets; the same on all ranks
};

// What the environment says; reads it anew on every call.
Settings read_settings();

// The same from any table of variables: what tests use.
using Variables = std::function<std::optional<std::string>(const char* name)>;
Settings read_settings(const Variables& variables);

// A variable that is called as if it were a setting, and that nothing reads.
struct UnknownSetting {
  std::string name;
  std::string meant;  // the setting that is spelt most like it; empty: none is near
};

// Of the environment's variables, by name, those that begin with KOLO_, say something, and are
// known to no part of kolo.
std::vector<UnknownSetting> unknown_settings();

// The same of any variables, each NAME=VALUE.
std::vector<UnknownSetting> unknown_settings(std::span<const std::string> variables);

// "KOLO_SEGMENT_BYTE is no setting of kolo's, and nothing reads it; is KOLO_SEGMENT_BYTES meant?"
std::string describe(const UnknownSetting& unknown);

// Whether the user has said something to a library that kolo would otherwise tell: "UCX_...".
bool is_in_environment(const char* name);

// What a program's flag says instead of the variable `name`: for this process and those that it
// starts. Not while other threads run.
void set_setting(const char* name, const std::string& value);

// Whether a host may be called so: 1 to 64 visible characters.
bool is_host_id(std::string_view text);

}  // namespace kolo
