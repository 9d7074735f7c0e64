#include "collectives/python/src/module.h"

namespace kolo::python {

// kolo::Error becomes an exception of kolo._errors; nanobind itself turns std::invalid_argument
// into ValueError and std::bad_alloc into MemoryError.
void bind_errors(nb::module_&) {
  nb::register_exception_translator([](const std::exception_ptr& exception, void*) {
    try {
      std::rethrow_exception(exception);
    } catch (const Error& error) {
      const nb::object made = error_object(&error);
      PyErr_SetObject(made.type().ptr(), made.ptr());
    }
  });
}

}  // namespace kolo::python

NB_MODULE(_native, module) {
  using namespace kolo::python;
  // At the end of a program, communicators may be referred to by a module that still exists.
  nb::set_leak_warnings(false);
  bind_errors(module);
  bind_options(module);
  bind_stores(module);
  bind_work(module);
  WorldClass world(module, "World");
  bind_communicator(world);
  bind_collectives(world);
  bind_variable_counts(world);
  bind_messages(world);
  bind_servers(module, world);
  bind_statistics(module, world);
  bind_key_servers(module);
}
