// The calls of ray.util.collective that take a list of tensors, one for each rank.
#pragma once

#include <nanobind/nanobind.h>

namespace nb = nanobind;

namespace col::python {

void bind_lists(nb::module_& module);

}  // namespace col::python
