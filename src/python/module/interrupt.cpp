#include "interrupt.hpp"

#include <unistd.h>

#include <string>

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <col/job.hpp>

#include "gil.hpp"

namespace nb = nanobind;

namespace col::python {

namespace {

// A name that does not exist, or is no text, is empty.
std::string text_of(nb::handle object, const char* name) {
  const nb::object value = nb::getattr(object, name, nb::none());
  return nb::isinstance<nb::str>(value) ? nb::cast<std::string>(value) : std::string();
}

// The innermost call that is not col's own: "train.py:88"; empty if there is none.
std::string place_of_call() {
  nb::object frame = nb::borrow(reinterpret_cast<PyObject*>(PyEval_GetFrame()));
  while (frame.is_valid() && !frame.is_none()) {
    const nb::object globals = nb::getattr(frame, "f_globals");
    const nb::object module = globals.attr("get")("__name__", "");
    const std::string name = nb::isinstance<nb::str>(module) ? nb::cast<std::string>(module) : std::string();
    if (name != "col" && !name.starts_with("col.")) {
      const std::string file = text_of(nb::getattr(frame, "f_code"), "co_filename");
      const int line = PyFrame_GetLineNumber(reinterpret_cast<PyFrameObject*>(frame.ptr()));
      return file.substr(file.rfind('/') + 1) + ":" + std::to_string(line);
    }
    frame = nb::getattr(frame, "f_back");
  }
  return {};
}

}  // namespace

void check_signals() {
  if (gettid() != getpid()) return;  // Python handles signals in the main thread alone
  const WithGil gil;
  if (PyErr_CheckSignals() != 0) throw nb::python_error();
  WaitContext::say_place(place_of_call());
}

}  // namespace col::python
