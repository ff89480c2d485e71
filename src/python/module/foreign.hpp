// What col needs of numpy, torch and ml_dtypes, if the program has imported them.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <optional>

#include <col/types.hpp>

namespace nb = nanobind;

namespace col::python {

// The module if it has been imported, without importing it; otherwise an empty object.
nb::object imported(const char* module);

enum class Kind : unsigned char { numpy, torch, exchanged, other };

// What objects of this type are. Cheap from the second time on.
struct TypeFacts {
  PyTypeObject* type = nullptr;
  Kind kind = Kind::other;
  bool is_torch = false;
  PyObject* exchange_api = nullptr;  // the capsule of __dlpack_c_exchange_api__
};
const TypeFacts& facts_of(PyTypeObject* type);

// Whether this numpy's arrays have the layout that read_numpy() reads. It is verified with an array.
bool has_known_numpy_layout();

// Whether numpy has the type only by the package ml_dtypes, and a buffer no format for it: bfloat16, and floats of 8
// bits.
bool is_in_ml_dtypes(DType dtype);
// Numpy's own type of that kind and size, if it has one.
std::optional<DType> dtype_in_numpy(ElementKind kind, std::size_t bytes);
// numpy.dtype of an element type. Imports numpy, and ml_dtypes if it is of that. Throws invalid_argument for opaque
// types.
// Never freed.
PyObject* numpy_dtype(DType dtype);
// The element type of anything that numpy.dtype() takes, or torch's dtypes.
DType dtype_from_python(nb::handle dtype);

}  // namespace col::python
