#include "errors.hpp"

#include <nanobind/stl/string.h>

#include <new>
#include <stdexcept>
#include <string>

namespace col::python {
namespace {

PyObject* error_classes = nullptr;  // a dict, for as long as the process lives

}  // namespace

void set_error_classes(nb::dict classes) {
  Py_XDECREF(error_classes);
  error_classes = classes.release().ptr();
}

nb::object exception_of(const Error& error) {
  const std::string code(to_string(error.code()));
  PyObject* type = error_classes == nullptr ? nullptr : PyDict_GetItemString(error_classes, code.c_str());
  if (type == nullptr) type = PyExc_RuntimeError;  // only while the package is being imported
  PyObject* const exception = PyObject_CallFunction(type, "siisO", error.what(), error.rank(), error.world_rank(),
                                                    error.group().c_str(), error.is_loss() ? Py_True : Py_False);
  if (exception == nullptr) throw nb::python_error();
  return nb::steal(exception);
}

void set_error(const Error& error) {
  try {
    const nb::object exception = exception_of(error);
    PyErr_SetObject(exception.type().ptr(), exception.ptr());
  } catch (nb::python_error& another) {
    another.restore();
  }
}

void set_current_error() noexcept {
  try {
    throw;
  } catch (nb::python_error& error) {
    error.restore();
  } catch (const Error& error) {
    set_error(error);
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
}

std::string text_of(nb::handle object) {
  return nb::cast<std::string>(nb::str(object));
}

std::string said(const nb::python_error& error) {
  return text_of(error.value());
}

void refuse(std::string_view message) {
  throw Error(ErrorCode::invalid_argument, message);
}

}  // namespace col::python
