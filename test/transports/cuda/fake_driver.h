// Fake machine with CUDA devices on the host, which implements the driver interface for tests.
//
// Device memory is host memory behind a memfd. So another "process" (a FakeDriver object) that
// opens an IPC handle sees the same bytes at another address. A stream is a queue: a wait for a
// word blocks the work behind it until the word has the value. The machine runs its queues on
// demand (run), or whenever a driver is called (Runs::kAtOnce).
//
// A real process with a fake machine of its own can also open a handle. The two then share the
// memory as on a
// device, but each detects only its own violations. So tests can kill a rank on streams.
//
// The fake is stricter than a device. These are violations with a text, where a device would give
// garbage: an address of another process, memory freed while a peer has it open, a handle opened in
// the process that made it, and a stream used after its end. A handle that is already open in the
// context gives kAlreadyMapped, as in practice. So does a handle of memory that replaces memory
// which is still open: in the same bytes, or in the same block, which small allocations share.
//
// A call that could block on a device is a violation, too, since no peer can end the wait of a test
// with one thread: work for a stream whose queue is full; and, while a stream of its context waits,
// a free, unregistration or closing. The same holds for an allocation or registration, since the
// driver does not promise otherwise (allocations_wait), and for the first use of a kernel, also of
// those that copy (loads_lazily).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "transports/cuda/driver.h"
#include "transports/posix/shared_memory.h"

namespace kolo::test {

class FakeDriver;

struct FakeWork {
  std::function<bool()> try_run;  // false: blocked
  std::uint64_t number = 0;       // in the order in which the machine got it
};

// Captured work in the order of the calls, one of the orders that a device may choose.
struct FakeGraph {
  std::uint64_t number = 0;
  std::vector<FakeWork> work;
};

struct FakeStream {
  FakeDriver* owner = nullptr;
  int device = -1;         // -1: the default stream of any device
  std::size_t number = 0;  // of its process
  std::deque<FakeWork> queue;
  bool is_destroyed = false;
  bool is_overfull = false;
  FakeGraph* capture = nullptr;  // receives the work during a capture
  bool is_created = false;       // by create_stream, so it must be destroyed
};

class FakeMachine {
 public:
  enum class Runs { kWhenTold, kAtOnce };
  explicit FakeMachine(int devices = 1, Runs runs = Runs::kAtOnce)
      : devices_(devices), runs_(runs) {}

  // A driver as a process of its own sees it. Drivers must not outlive the machine.
  std::shared_ptr<FakeDriver> process();

  // Runs all work that can run on all streams. Returns true if nothing is left.
  bool run();
  // Runs at most `most` pieces of work, stream after stream. Returns how many ran.
  std::size_t run_some(std::size_t most);
  // Runs the first piece of work of this stream; returns false if it is blocked or there is none.
  bool step(cuda::Stream stream);
  // Selects when queues run: from now on at every driver call, or only on demand.
  void run_at_once();
  void run_when_told();

  // All forbidden calls so far.
  std::vector<std::string> violations() const;
  // Resources that are still alive: memory, mappings, registrations, contexts, created streams and
  // events. Empty if all is clean.
  std::string left_over() const;
  // Bytes of host memory that devices can access, in all processes.
  std::size_t pinned_bytes() const;

  // --- properties of the machine ---
  bool peers_reach = true;  // devices reach one another
  std::set<int> hidden;     // devices that cannot wait for words
  bool has_pools = true;
  int driver_version = 13000;
  std::string absent;  // the error if there is no driver
  std::size_t bytes_per_device = std::size_t{1} << 30;
  std::size_t block_bytes = std::size_t{2} << 20;  // shared by small allocations
  bool allocations_wait = true;  // allocations and registrations may wait for all streams
  bool loads_lazily = false;     // the first use of a kernel may wait for all streams
  // Queues that the streams of a process share in turn, as on a device with
  // CUDA_DEVICE_MAX_CONNECTIONS (8 by default). Work waits for all earlier work of its queue. 0:
  // each stream has a queue of its own.
  std::size_t hardware_queues = 0;
  std::size_t most_pending = 1024;  // work of a stream that may wait; a graph's launch is one

 private:
  friend class FakeDriver;

  struct Block {
    int allocations = 0;  // 0: the block is gone
  };

  struct Backing {
    std::size_t bytes = 0;
    int device = 0;
    std::shared_ptr<posix::SharedMemory> memory;
    std::shared_ptr<Block> block;
    std::uint64_t handle = 0;  // its number, once exported
    int times_open = 0;        // by other processes
    bool is_exported = false;
    bool is_freed = false;
    const FakeDriver* owner = nullptr;
  };

  bool run_locked();
  // Runs the first piece of work of a stream. False if it is blocked or there is none.
  bool try_first(FakeStream& stream);
  void run_if_at_once() {
    if (runs_ == Runs::kAtOnce) run_locked();
  }

  const int devices_;
  Runs runs_;
  mutable std::mutex mutex_;
  std::vector<FakeDriver*> processes_;
  std::map<std::uint64_t, std::shared_ptr<Backing>> handles_;
  std::uint64_t last_handle_ = 0;
  std::map<int, std::size_t> used_;
  std::vector<std::string> violations_;
  std::vector<std::unique_ptr<FakeStream>> streams_;
  std::atomic<int> last_process_ = 0;
  std::uint64_t last_capture_ = 0;
  std::uint64_t last_work_ = 0;
};

class FakeDriver final : public cuda::Driver {
 public:
  explicit FakeDriver(FakeMachine& machine);
  ~FakeDriver() override;

  // --- control by tests ---

  // Makes the `nth` call (from 1) of a Driver function end with `code` from now on; nth 0: every
  // call.
  void fail(const std::string& function, int code, int nth = 1);
  int calls(const std::string& function) const;
  std::map<std::string, int> all_calls() const;

  cuda::Stream make_stream(int device = 0);
  // Captures the stream into a graph, which can be launched after end_capture. Streams that wait
  // for an event of the capture join it. As in the runtime's global mode, calls that may wait for a
  // device or change memory are violations during a capture, unless the thread has changed its
  // mode.
  void capture(cuda::Stream stream);
  FakeGraph* end_capture(cuda::Stream stream);
  void replay(const FakeGraph& graph, cuda::Stream stream);
  // For functions outside the driver that allocate: the call may wait for all streams of the
  // context.
  void wait_to_allocate(const std::string& function);
  // Bytes that copies and kernels of this process read and write.
  struct Moved {
    std::size_t read = 0;
    std::size_t written = 0;
  };
  Moved moved() const;
  void count_moved(const Moved& moved);  // for kernels

  // For functions outside the driver: counts the call and returns its planned result.
  int call_other(const std::string& function);
  void require_beside_capture(const std::string& function);

  // True if the event's stream has reached it.
  bool has_reached(cuda::Event event);

  // A kernel in the order of the stream. It gets the memory at the addresses, which must belong to
  // the process for their bytes; null stays null.
  struct Operand {
    const void* at = nullptr;
    std::size_t bytes = 0;
  };
  using Kernel = std::function<void(const std::vector<std::byte*>& operands)>;
  void launch(cuda::Stream stream, const std::vector<Operand>& operands, Kernel kernel);
  // Loads this kernel into the process, unless it is loaded.
  void load_kernel(const std::string& kernel);

  enum class Kind { kDevice, kManaged, kVirtual, kPool };
  std::byte* make_memory(std::size_t bytes, Kind kind, int device = 0);
  // Frees the memory and allocates it again at the same address.
  void replace(std::byte* memory);
  void replace(const std::vector<std::byte*>& memory);  // frees all before it allocates any

  // Device of the current context in every thread of the process; -1: none.
  int current = -1;

  // --- Driver ---
  std::string why_absent() const override;
  int init() override;
  int version(int* version) override;
  const char* error_name(int code) override;
  const char* error_text(int code) override;
  int device_count(int* count) override;
  int device_name(char* name, int bytes, int device) override;
  int device_uuid(std::array<std::uint8_t, 16>* uuid, int device) override;
  int device_attribute(int* value, cuda::DeviceAttribute attribute, int device) override;
  int can_access_peer(int* can, int device, int peer) override;
  int retain_context(cuda::Context* context, int device) override;
  int release_context(int device) override;
  int push_context(cuda::Context context) override;
  int pop_context(cuda::Context* context) override;
  int current_device(int* device) override;
  int enable_peer_access(cuda::Context peer) override;
  int allocate(cuda::Address* memory, std::size_t bytes) override;
  int allocate_async(cuda::Address* memory, std::size_t bytes, cuda::Stream stream) override;
  int free(cuda::Address memory) override;
  int memory_info(std::size_t* free, std::size_t* total) override;
  int allocate_host(void** memory, std::size_t bytes) override;
  int free_host(void* memory) override;
  int register_host(void* memory, std::size_t bytes, unsigned flags) override;
  int unregister_host(void* memory) override;
  int host_address(cuda::Address* address, void* memory) override;
  int pointer_attribute(void* value, cuda::PointerAttribute attribute,
                        cuda::Address pointer) override;
  int ipc_handle(cuda::IpcHandle* handle, cuda::Address memory) override;
  int ipc_open(cuda::Address* memory, const cuda::IpcHandle& handle, unsigned flags) override;
  int ipc_close(cuda::Address memory) override;
  int create_stream(cuda::Stream* stream, unsigned flags, int priority) override;
  int destroy_stream(cuda::Stream stream) override;
  int copy(cuda::Address to, cuda::Address from, std::size_t bytes, cuda::Stream stream) override;
  int word_operations(cuda::Stream stream, std::span<cuda::WordOperation> operations) override;
  int capture_of(cuda::Stream stream, int* status, std::uint64_t* number) override;
  int exchange_capture_mode(int* mode) override;
  int create_event(cuda::Event* event, unsigned flags) override;
  int destroy_event(cuda::Event event) override;
  int record_event(cuda::Event event, cuda::Stream stream) override;
  int query_event(cuda::Event event) override;
  int wait_event(cuda::Stream stream, cuda::Event event) override;

 private:
  friend class FakeMachine;

  struct Range {
    std::size_t bytes = 0;
    Kind kind = Kind::kDevice;
    std::uint64_t buffer = 0;
    bool is_host = false;
    bool is_import = false;
    int context = 0;                                // the device of an import
    std::pair<int, std::uint64_t> handle{};         // process and number of an import
    std::shared_ptr<FakeMachine::Backing> backing;  // device memory
    std::unique_ptr<posix::SharedMemory> mapping;   // of an import
    std::unique_ptr<std::byte[]> pinned;            // of allocate_host
  };
  struct Event {
    std::uint64_t recorded = 0;
    std::uint64_t done = 0;
    std::uint64_t capture = 0;  // the capture of its last record; 0: none
  };
  struct Failure {
    int code = 0;
    int nth = 0;
  };

  // Counts the call and returns its planned result.
  int enter(const char* function);
  int allocate_kind(cuda::Address* memory, std::size_t bytes, Kind kind, int device);
  void replace_all(const std::vector<std::byte*>& memory);
  void begin_block(Range& range, cuda::Address memory);
  void end_backing(FakeMachine::Backing& backing);
  bool is_in_the_way(const Range& open, const Range& wanted) const;
  std::pair<const cuda::Address, Range>* range_of(cuda::Address address);
  std::byte* resolve(cuda::Address address, std::size_t bytes, const char* what);
  void violate(const std::string& text);
  bool has_capture(std::uint64_t number) const;
  bool is_beside_capture(const std::string& function);
  int wait_in_capture(FakeStream& stream, const Event& event);
  // Adds work to a stream, or to the graph into which it is captured.
  // On a device the call may wait for all streams of the context.
  void wait_for_context(const std::string& function);
  void load_locked(const std::string& kernel);
  bool run_word(const cuda::WordOperation& operation);
  void give(FakeStream& stream, std::function<bool()> work);
  void require_room(FakeStream& stream);
  FakeStream* stream_of(cuda::Stream stream);
  // Null also if it belongs to a device other than the current context's.
  FakeStream* stream_here(cuda::Stream stream);
  FakeStream* add_stream(int device = -1);

  FakeMachine& machine_;
  const int number_;
  std::map<std::string, int> calls_;
  Moved moved_;
  std::map<std::string, Failure> failures_;
  std::set<std::string> loaded_;  // kernels
  std::map<cuda::Address, Range> ranges_;
  std::map<cuda::Address, std::weak_ptr<FakeMachine::Block>> blocks_;  // of small allocations
  std::set<Event*> events_;
  std::vector<std::unique_ptr<Event>> all_events_;
  std::vector<std::unique_ptr<FakeGraph>> graphs_;
  std::map<int, int> contexts_;
  std::uint64_t last_buffer_ = 0;
  std::size_t streams_made_ = 0;
};

}  // namespace kolo::test
