// One message of a batch, as Python makes it.
#pragma once

#include <nanobind/nanobind.h>

namespace nb = nanobind;

namespace col::python {

struct MessageObject {
  bool is_send;
  nb::object tensor;
  int peer;
  int tag;
};

void bind_messages(nb::module_& module);

}  // namespace col::python
