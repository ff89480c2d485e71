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

void set_error(const Error& error) {
  const std::string code(to_string(error.code()));
  PyObject* const type = error_classes == nullptr ? nullptr : PyDict_GetItemString(error_classes, code.c_str());
  if (type == nullptr) {  // only while the package is being imported
    PyErr_SetString(PyExc_RuntimeError, error.what());
    return;
  }
  const std::string group = error.group();
  PyObject* const exception =
      PyObject_CallFunction(type, "siis", error.what(), error.rank(), error.world_rank(), group.c_str());
  if (exception == nullptr) return;
  PyErr_SetObject(type, exception);
  Py_DECREF(exception);
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

std::string said(const nb::python_error& error) {
  return nb::cast<std::string>(nb::str(error.value()));
}

void refuse(std::string_view message) {
  throw Error(ErrorCode::invalid_argument, message);
}

}  // namespace col::python
