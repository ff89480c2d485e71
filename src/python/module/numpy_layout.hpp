// The parts of numpy's arrays that its C interface keeps stable, so that reading one costs nanoseconds and no header of
// numpy's. has_known_numpy_layout() compares them with what numpy itself says.
#pragma once

#include <Python.h>

#include <cstdint>

namespace col::python {

inline constexpr int kNumpyContiguous = 0x1;
inline constexpr int kNumpyWriteable = 0x400;

struct NumpyDType {
  PyObject head;
  PyTypeObject* scalar_type;
  char kind, character, byte_order, flags;
  int number;
};

struct NumpyArray {
  PyObject head;
  void* data;
  int ndim;
  Py_ssize_t* shape;
  Py_ssize_t* strides;
  PyObject* base;
  PyObject* dtype;
  int flags;

  const NumpyDType& dtype_layout() const { return *reinterpret_cast<const NumpyDType*>(dtype); }
};

}  // namespace col::python
