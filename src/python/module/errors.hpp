// Errors on their way to Python: col::Error becomes the exception of its code (col/errors.py).
#pragma once

#include <nanobind/nanobind.h>

#include <string>
#include <string_view>

#include <col/error.hpp>

namespace nb = nanobind;

namespace col::python {

// By the names of the codes, as the module's own set_error_classes().
void set_error_classes(nb::dict classes);

// The exception of an error's code.
nb::object exception_of(const Error& error);
// Sets Python's error.
void set_error(const Error& error);

// Sets Python's error from the exception that is being handled.
void set_current_error() noexcept;

// The result of `function`, or null with Python's error set: for functions that Python calls directly.
template <class Function>
PyObject* guarded(Function&& function) noexcept {
  try {
    return function();
  } catch (...) {
    set_current_error();
    return nullptr;
  }
}

// str(object).
std::string text_of(nb::handle object);
// What an exception of Python's says, for a message of ours.
std::string said(const nb::python_error& error);

[[noreturn]] void refuse(std::string_view message);

}  // namespace col::python
