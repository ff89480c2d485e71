#include <array>
#include <iterator>
#include <string>

#include <nanobind/stl/string.h>

#include "errors.hpp"
#include "foreign.hpp"
#include "numpy_layout.hpp"
#include "tensor.hpp"

namespace col::python {
namespace {

// Numpy's first type numbers, by their C types.
constexpr DType kNone = DType::bytes;
constexpr DType kByNumber[] = {DType::boolean,
                               DType::int8,
                               DType::uint8,
                               DType::int16,
                               DType::uint16,
                               DType::int32,
                               DType::uint32,
                               dtype_of<long>(),
                               dtype_of<unsigned long>(),
                               dtype_of<long long>(),
                               dtype_of<unsigned long long>(),
                               DType::float32,
                               DType::float64,
                               kNone,
                               DType::complex64,
                               DType::complex128};
constexpr int kHalf = 23;

// The types of the package ml_dtypes get their numbers when that is imported.
DType dtype_of_number(int number, PyObject* dtype, Role role) {
  static std::array<int, kDTypeCount> imported = {};  // 0: not seen yet, as it is boolean's
  if (number == kHalf) return DType::float16;
  if (number >= 0 && number < static_cast<int>(std::size(kByNumber)) && kByNumber[number] != kNone)
    return kByNumber[number];
  for (std::size_t i = 0; i < imported.size(); ++i)
    if (imported[i] == number) return static_cast<DType>(i);
  const auto name = nb::cast<std::string>(nb::handle(dtype).attr("name"));
  for (std::size_t i = 0; i < imported.size(); ++i) {
    if (!is_in_ml_dtypes(static_cast<DType>(i)) || name != kDTypes[i].name) continue;
    imported[i] = number;
    return static_cast<DType>(i);
  }
  refuse_dtype(role, name);
}

}  // namespace

void read_numpy(PyObject* object, Role role, Tensor& tensor) {
  const auto& array = *reinterpret_cast<const NumpyArray*>(object);
  const NumpyDType& dtype = array.dtype_layout();
  tensor.library = Library::numpy;
  tensor.numpy_dtype = array.dtype;
  tensor.view.dtype = dtype_of_number(dtype.number, array.dtype, role);
  if (dtype.byte_order == '>')
    refuse(role.text() +
           " holds its elements in the byte order of other machines; "
           "convert it: " +
           role.name + ".astype(" + role.name + ".dtype.newbyteorder('='))");
  if ((array.flags & kNumpyContiguous) == 0) refuse_strides(role, Library::numpy);
  tensor.is_read_only = (array.flags & kNumpyWriteable) == 0;
  std::size_t count = 1;
  for (int i = 0; i < array.ndim; ++i) count *= static_cast<std::size_t>(array.shape[i]);
  tensor.view.count = count;
  tensor.view.data = array.data;
}

}  // namespace col::python
