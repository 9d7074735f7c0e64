#include "collectives/python/src/calls.h"

#include <cmath>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <utility>

namespace kolo::python {

namespace {

// Time between two looks for Python's signals.
constexpr std::chrono::milliseconds kSlice{100};

// Waits for a slice. True once the operation has ended; throws its failure.
bool wait_slice(Work& work, Deadline deadline) {
  const Deadline until = std::min(deadline, Clock::now() + kSlice);
  try {
    work.wait(until);
    return true;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kDeadline || error.peer() != kNoPeer) throw;
  }
  // The slice's end, or the operation's own failure.
  if (!work.test()) return false;
  work.wait();
  return true;
}

void handle_signals() {
  if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

}  // namespace

std::chrono::milliseconds milliseconds_of(std::chrono::duration<double> timeout) {
  const double milliseconds = std::ceil(timeout.count() * 1000);
  if (!(milliseconds >= 0)) throw std::invalid_argument("the timeout is below 0, or not a number");
  constexpr double kLongest = 1e12;  // 30 years
  return std::chrono::milliseconds(static_cast<std::int64_t>(std::min(milliseconds, kLongest)));
}

CallOptions Call::options() const {
  CallOptions options;
  options.algorithm = algorithm;
  options.segment_bytes = segment_bytes;
  options.timeout = milliseconds_of(timeout);
  options.scale = scale;
  options.is_persistent = is_persistent;
  return options;
}

Function make_function(nb::object function) {
  return {std::make_unique<nb::object>(std::move(function)).release(), [](nb::object* held) {
            const std::unique_ptr<nb::object> owner(held);
            if (Py_IsInitialized() == 0) {  // the interpreter has freed the object
              owner->release();
              return;
            }
            const nb::gil_scoped_acquire gil;
            owner->reset();
          }};
}

void call_python(const std::function<void()>& body) {
  std::string text;
  {
    const nb::gil_scoped_acquire gil;
    try {
      return body();
    } catch (const nb::python_error& error) {
      text = std::string(nb::str(error.type().attr("__name__")).c_str()) + ": " +
             nb::str(error.value()).c_str();
    }
  }
  throw std::runtime_error(text);
}

nb::object error_object(const Error* failure) {
  if (failure == nullptr) return nb::none();
  const auto errors = nb::module_::import_("kolo._errors");
  return errors.attr("make_error")(std::string(to_string(failure->code())).c_str(), failure->peer(),
                                   failure->what());
}

void Flight::release() {
  if (is_persistent) return;
  in = Array();
  out = Array();
}

World::World(Communicator made)
    : communicator_(std::make_unique<Communicator>(std::move(made)).release(),
                    [](Communicator* ended) {
                      const nb::gil_scoped_release no_gil;
                      const std::unique_ptr<Communicator> owner(ended);
                    }) {}

std::shared_ptr<Communicator> World::held() const {
  if (!communicator_) throw std::invalid_argument("this communicator is closed");
  return communicator_;
}

void World::close() {
  communicator_.reset();
  // A call of another thread may have the communicator still.
  std::erase_if(flights_, [](const auto& flight) { return flight->has_ended->load(); });
}

void World::release_ended() {
  constexpr std::size_t kFew = 16;
  if (flights_.empty() || (flights_.size() > kFew && flights_.size() < longest_)) return;
  std::erase_if(flights_, [](const auto& flight) { return flight->has_ended->load(); });
  longest_ = 2 * flights_.size();
}

void World::keep(const std::shared_ptr<Flight>& flight) {
  {
    const nb::gil_scoped_release no_gil;  // for the engine's lock
    flight->work.when_done(
        [has_ended = flight->has_ended](const Error*) { has_ended->store(true); });
  }
  if (!flight->has_ended->load()) flights_.push_back(flight);
}

bool wait_interruptibly(Work& work, Deadline deadline) {
  for (;;) {
    {
      const nb::gil_scoped_release no_gil;
      if (wait_slice(work, deadline)) return true;
    }
    if (Clock::now() >= deadline) return false;
    handle_signals();
  }
}

namespace {

// What runs on a thread of its own, and how it ended.
class Runner {
 public:
  void run(const std::function<void()>& body) {
    std::exception_ptr failure;
    try {
      body();
    } catch (...) {
      failure = std::current_exception();
    }
    const std::lock_guard lock(mutex_);
    failure_ = failure;
    is_done_ = true;
    changed_.notify_all();
  }
  bool wait_slice() {
    const nb::gil_scoped_release no_gil;
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kSlice, [&] { return is_done_; });
  }
  void rethrow() const {
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_done_ = false;
  std::exception_ptr failure_;
};

}  // namespace

void run_interruptibly(const std::function<void()>& body, const std::function<void()>& interrupt) {
  Runner runner;
  std::exception_ptr signal;
  const std::jthread thread([&] { runner.run(body); });
  while (!runner.wait_slice()) {
    if (signal != nullptr) continue;
    try {
      handle_signals();
    } catch (...) {
      signal = std::current_exception();
      const nb::gil_scoped_release no_gil;
      interrupt();
    }
  }
  if (signal) std::rethrow_exception(signal);
  runner.rethrow();
}

void run_or_leave(std::function<void()> body) {
  const auto runner = std::make_shared<Runner>();
  std::thread([runner, body = std::move(body)] { runner->run(body); }).detach();
  while (!runner->wait_slice()) handle_signals();
  runner->rethrow();
}

nb::any run(const std::shared_ptr<World>& world, std::shared_ptr<Flight> flight, const Call* call,
            bool waits, const Issue& issue) {
  const std::shared_ptr<Communicator> communicator = world->held();
  world->release_ended();
  const CallOptions options = call == nullptr ? CallOptions{} : call->options();
  flight->is_persistent = options.is_persistent;
  if (waits && options.is_persistent)
    throw std::invalid_argument("a persistent operation needs the _async form, and Work.start()");
  bool is_done = false;
  {
    const nb::gil_scoped_release no_gil;
    flight->work = issue(*communicator, options);
    if (waits) is_done = wait_slice(flight->work, Deadline::max());
  }
  if (!waits) {
    if (!options.is_persistent) world->keep(flight);
    return nb::borrow<nb::any>(nb::cast(PythonWork{std::move(flight), world}));
  }
  try {
    if (!is_done) wait_interruptibly(flight->work);
  } catch (const nb::python_error&) {
    world->keep(flight);  // interrupted: the operation goes on
    throw;
  }
  return nb::borrow<nb::any>(flight->result);
}

}  // namespace kolo::python
