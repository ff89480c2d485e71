#include "interrupt.hpp"

#include <unistd.h>

#include <nanobind/nanobind.h>

#include "gil.hpp"

namespace nb = nanobind;

namespace col::python {

void check_signals() {
  if (gettid() != getpid()) return;  // Python handles signals in the main thread alone
  const WithGil gil;
  if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

}  // namespace col::python
