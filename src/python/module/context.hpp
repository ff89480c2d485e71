// The job of this process: init(), finalize(), and the groups by their names.
#pragma once

#include <nanobind/nanobind.h>

#include <col/group.hpp>

namespace nb = nanobind;

namespace col::python {

// The context that init() has made, else the one of the environment.
Context& current_context();

void bind_context(nb::module_& module);

}  // namespace col::python
