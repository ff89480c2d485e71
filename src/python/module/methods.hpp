// Methods of Group that Python calls directly, with an array of arguments: the fast way, for calls that take less than
// a microsecond. The others are nanobind's.
#pragma once

#include <Python.h>

#include <string>
#include <vector>

#include "arguments.hpp"

namespace col::python {

class MethodTable {
 public:
  using Function = PyObject* (*)(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* keyword_names);

  void add(const Signature& signature, Function function, const std::string& doc);
  // For Py_tp_methods. Valid for ever.
  PyMethodDef* take();

 private:
  std::vector<PyMethodDef> methods_;
};

void add_collectives(MethodTable& table);
void add_messages(MethodTable& table);

}  // namespace col::python
