// Plans as data: what col/plan.py is made of.
#pragma once

#include <nanobind/nanobind.h>

namespace nb = nanobind;

namespace col::python {

void bind_plan(nb::module_& module);

}  // namespace col::python
