#include <cstring>
#include <string>

#include "errors.hpp"
#include "foreign.hpp"
#include "tensor.hpp"

namespace col::python {
namespace {

// A buffer's format, as in Python's module struct.
bool dtype_of_format(const char* format, Py_ssize_t bytes, DType& dtype) {
  if (format == nullptr) format = "B";
  if (*format == '@' || *format == '=' || *format == '<') ++format;
  const auto find = [&](ElementKind kind) {
    for (std::size_t i = 0; i < kDTypes.size(); ++i) {
      if (kDTypes[i].kind != kind || static_cast<Py_ssize_t>(kDTypes[i].size) != bytes) continue;
      if (is_in_ml_dtypes(static_cast<DType>(i))) continue;  // it has no format
      dtype = static_cast<DType>(i);
      return true;
    }
    return false;
  };
  if (std::strcmp(format, "Zf") == 0 || std::strcmp(format, "Zd") == 0) return find(ElementKind::complex);
  if (std::strlen(format) != 1) return false;
  if (std::strchr("bhilqn", *format) != nullptr) return find(ElementKind::signed_integer);
  if (std::strchr("BHILQNc", *format) != nullptr) return find(ElementKind::unsigned_integer);
  if (std::strchr("efd", *format) != nullptr) return find(ElementKind::floating);
  return *format == '?' && find(ElementKind::boolean);
}

struct Release {
  void operator()(void* buffer) const {
    PyBuffer_Release(static_cast<Py_buffer*>(buffer));
    delete static_cast<Py_buffer*>(buffer);
  }
};

}  // namespace

bool read_buffer(PyObject* object, Role role, Tensor& tensor) {
  if (!PyObject_CheckBuffer(object)) return false;
  auto buffer = std::make_unique<Py_buffer>();
  if (PyObject_GetBuffer(object, buffer.get(), PyBUF_FORMAT | PyBUF_STRIDES) != 0) throw nb::python_error();
  tensor.lease = std::shared_ptr<void>(buffer.get(), Release());
  const Py_buffer& view = *buffer.release();
  if (!dtype_of_format(view.format, view.itemsize, tensor.view.dtype))
    refuse_dtype(role, std::string("of the format '") + (view.format == nullptr ? "" : view.format) + "'");
  if (PyBuffer_IsContiguous(&view, 'C') == 0) refuse_strides(role, Library::numpy);
  tensor.view.data = view.buf;
  tensor.view.count = view.itemsize > 0 ? static_cast<std::size_t>(view.len / view.itemsize) : 0;
  tensor.is_read_only = view.readonly != 0;
  return true;
}

}  // namespace col::python
