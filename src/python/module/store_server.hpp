// A store in this process, for ranks that have none to meet in.
#pragma once

#include <nanobind/nanobind.h>

namespace nb = nanobind;

namespace col::python {

void bind_store_server(nb::module_& module);

}  // namespace col::python
