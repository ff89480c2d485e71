// Memory that the ranks of a node share, for arrays: see <col/memory.hpp>.
#pragma once

#include <nanobind/nanobind.h>

namespace nb = nanobind;

namespace col::python {

void bind_memory(nb::module_& module);

}  // namespace col::python
