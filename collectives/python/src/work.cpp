// Work handles.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include <vector>

#include "collectives/python/src/module.h"

namespace kolo::python {

namespace {

using namespace nb::literals;

Deadline deadline_in(std::optional<double> timeout) {
  if (!timeout) return Deadline::max();
  return Clock::now() + milliseconds_of(std::chrono::duration<double>(*timeout));
}

nb::any wait(PythonWork& self, std::optional<double> timeout) {
  if (!wait_interruptibly(self.flight->work, deadline_in(timeout))) {
    throw Error(ErrorCode::kDeadline, kNoPeer,
                "the operation is still in flight after the timeout given to wait(); it goes on");
  }
  self.flight->release();
  return nb::borrow<nb::any>(self.flight->result);
}

bool test(PythonWork& self) {
  bool has_ended = false;
  {
    const nb::gil_scoped_release no_gil;
    has_ended = self.flight->work.test();
  }
  if (has_ended) self.flight->release();
  return has_ended;
}

void when_done(PythonWork& self, nb::object callback) {
  auto function = make_function(std::move(callback));
  const nb::gil_scoped_release no_gil;
  self.flight->work.when_done([function](const Error* failure) {
    const nb::gil_scoped_acquire gil;
    try {
      (*function)(error_object(failure));
    } catch (nb::python_error& error) {
      error.discard_as_unraisable(*function);  // as an exception in __del__
    }
  });
}

void start(PythonWork& self) {
  {
    const nb::gil_scoped_release no_gil;
    self.flight->work.start();
  }
  self.flight->has_ended = std::make_shared<std::atomic<bool>>(false);
  self.world->keep(self.flight);
}

std::optional<std::size_t> first_ended(const std::vector<PythonWork*>& works,
                                       std::optional<double> timeout) {
  const Deadline deadline = deadline_in(timeout);
  std::vector<Work> all;
  all.reserve(works.size());
  for (const PythonWork* work : works) all.push_back(work->flight->work);
  for (;;) {
    std::optional<std::size_t> ended;
    {
      const nb::gil_scoped_release no_gil;
      constexpr std::chrono::milliseconds kSlice{100};
      ended = kolo::wait_any(all, std::min(deadline, Clock::now() + kSlice));
    }
    if (ended || Clock::now() >= deadline) return ended;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
  }
}

constexpr const char* kWorkText =
    R"(Handle of an operation in flight, from a method whose name ends in `_async`.

It keeps the arrays of the operation alive. Until the operation is done, do not write its input and
do not use its output. Threads may share a Work. A Work that is dropped neither cancels its
operation nor waits for it.)";

constexpr const char* kWaitText =
    R"(Waits until the operation is done; returns what the blocking method returns.

Raises the operation's failure. `timeout` in seconds, None: the operation's own timeout alone.
Raises DeadlineExceeded without a peer when it passes; the operation goes on, and may be waited for
again. KeyboardInterrupt ends the wait, too.)";

constexpr const char* kTestText =
    R"(True once the operation has ended, with success or not: wait() tells which.

Makes progress for the whole communicator, without blocking.)";

constexpr const char* kWhenDoneText =
    R"(Calls `callback` once the operation has ended: with None, or with its Error.

At once if it has ended, else on the thread whose call ends it. The callback may issue operations,
but must not wait for one. Its exceptions go to sys.unraisablehook.)";

constexpr const char* kStartText =
    R"(Issues a persistent operation (CallOptions.persistent) again, with the same arrays.

Every rank starts operations in the same order. ValueError: it is in flight, or not persistent.)";

constexpr const char* kWaitAnyText =
    R"(Waits until one of the works has ended; returns its index in the list.

Its wait() then raises its failure, if it has one. None: `timeout` seconds have passed. All works
are of one communicator.)";

}  // namespace

void bind_work(nb::module_& module) {
  nb::class_<PythonWork>(module, "Work", kWorkText)
      .def("wait", wait, "timeout"_a = nb::none(), kWaitText)
      .def("test", test, kTestText)
      .def("when_done", when_done, "callback"_a,
           nb::sig("def when_done(self, callback: collections.abc.Callable[[Exception | None], "
                   "object]) -> None"),
           kWhenDoneText)
      .def("start", start, kStartText);
  module.def("wait_any", first_ended, "works"_a, "timeout"_a = nb::none(), kWaitAnyText);
}

}  // namespace kolo::python
