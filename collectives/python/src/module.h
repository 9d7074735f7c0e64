// Parts of the extension module kolo._native, on which the package kolo is built.
#pragma once

#include <nanobind/nanobind.h>

#include "collectives/python/src/calls.h"

namespace kolo::python {

using WorldClass = nb::class_<World>;

void bind_errors(nb::module_& module);
void bind_options(nb::module_& module);
void bind_stores(nb::module_& module);
void bind_work(nb::module_& module);
void bind_communicator(WorldClass& world);
void bind_statistics(nb::module_& module, WorldClass& world);
void bind_collectives(WorldClass& world);
void bind_variable_counts(WorldClass& world);
void bind_messages(WorldClass& world);
void bind_key_servers(nb::module_& module);
void bind_servers(nb::module_& module, WorldClass& world);

}  // namespace kolo::python
