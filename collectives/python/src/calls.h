// Operations of Python: their arguments, kept alive while they are in flight, and their waits.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/shared_ptr.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "collectives/communicator.h"
#include "collectives/python/src/array.h"

namespace kolo::python {

// Options of one call; owns the name of the algorithm, which CallOptions borrows.
struct Call {
  std::string algorithm;
  std::size_t segment_bytes = 0;
  std::chrono::duration<double> timeout{0};
  double scale = 1;
  bool is_persistent = false;

  CallOptions options() const;
};

// Timeout in seconds as whole milliseconds, rounded up. std::invalid_argument: below 0, or no
// number.
std::chrono::milliseconds milliseconds_of(std::chrono::duration<double> timeout);

// A Python function that C++ may hold, copy and destroy on any thread, without the GIL.
using Function = std::shared_ptr<nb::object>;
Function make_function(nb::object function);

// Calls `body` with the GIL. Python's exception becomes a std::runtime_error with its text.
void call_python(const std::function<void()>& body);

// The exception of kolo._errors for a failure; None for null. Needs the GIL.
nb::object error_object(const Error* failure);

// An operation in flight with all that it borrows. Made and destroyed with the GIL.
struct Flight {
  Work work;
  Array in;  // without a value if the call is in place
  Array out;
  bool is_in_place = false;
  nb::object result = nb::none();
  bool is_persistent = false;
  // Set by the thread that ends the operation, which may not have the GIL.
  std::shared_ptr<std::atomic<bool>> has_ended = std::make_shared<std::atomic<bool>>(false);

  ConstBuffer input() const { return is_in_place ? out.const_buffer() : in.const_buffer(); }
  Buffer output() const { return out.buffer(); }
  void release();  // of what it borrows, unless the operation may start again
};

// Communicator with the flights of its operations. All functions need the GIL, and are called from
// several threads.
class World {
 public:
  // Ends the communicator without the GIL: its progress thread may be in a callback.
  explicit World(Communicator made);

  // The communicator stays alive while a call has it. std::invalid_argument: it is closed.
  std::shared_ptr<Communicator> held() const;
  void close();

  // Keeps what the operation borrows until it has ended.
  void keep(const std::shared_ptr<Flight>& flight);
  // Releases what ended operations have borrowed. Costs little: many flights are rarely looked at.
  void release_ended();

 private:
  // Before the communicator, which may use their memory until it ends.
  std::vector<std::shared_ptr<Flight>> flights_;
  std::size_t longest_ = 0;  // of flights_, until the ended ones are released
  std::shared_ptr<Communicator> communicator_;
};

// The result of a call that takes locks or time, without the GIL.
template <typename Ask>
auto ask(const std::shared_ptr<World>& world, Ask&& ask) {
  const auto communicator = world->held();
  const nb::gil_scoped_release no_gil;
  return std::forward<Ask>(ask)(*communicator);
}

// Waits until the operation has ended, and throws its failure. Needs the GIL, and releases it.
// Python's signals are handled ten times a second, so KeyboardInterrupt ends the wait. False: the
// deadline has passed.
bool wait_interruptibly(Work& work, Deadline deadline = Deadline::max());

// The reason of an abort by a signal.
inline constexpr const char* kInterrupted = "interrupted by a signal, such as Ctrl-C";

// Runs `body` without the GIL, in a thread of its own for as long as it takes, and handles Python's
// signals meanwhile. At an exception such as KeyboardInterrupt, `interrupt` has to end `body`. For
// calls that have no asynchronous form.
void run_interruptibly(const std::function<void()>& body, const std::function<void()>& interrupt);

// The same for a body that nothing can end: at such an exception it goes on, and its thread ends
// with it. It owns all that it uses, and uses nothing of Python.
void run_or_leave(std::function<void()> body);

// The Work of a call, as Python sees it.
struct PythonWork {
  std::shared_ptr<Flight> flight;
  std::shared_ptr<World> world;
};

// Issues one operation. Returns the flight's result once it is done, or (`waits` false) its Work.
using Issue = std::function<Work(Communicator& world, const CallOptions& options)>;
nb::any run(const std::shared_ptr<World>& world, std::shared_ptr<Flight> flight, const Call* call,
            bool waits, const Issue& issue);

}  // namespace kolo::python
