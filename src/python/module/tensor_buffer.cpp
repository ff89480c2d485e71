#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include "errors.hpp"
#include "foreign.hpp"
#include "tensor.hpp"

namespace col::python {
namespace {

// A buffer's format, as in Python's module struct.
std::optional<DType> dtype_of_format(const char* format, std::size_t bytes) {
  if (format == nullptr) format = "B";
  if (*format == '@' || *format == '=' || *format == '<') ++format;
  const std::string_view code(format);
  if (code == "Zf" || code == "Zd") return dtype_in_numpy(ElementKind::complex, bytes);
  if (code.size() != 1) return std::nullopt;
  if (std::strchr("bhilqn", *format) != nullptr) return dtype_in_numpy(ElementKind::signed_integer, bytes);
  if (std::strchr("BHILQNc", *format) != nullptr) return dtype_in_numpy(ElementKind::unsigned_integer, bytes);
  if (std::strchr("efd", *format) != nullptr) return dtype_in_numpy(ElementKind::floating, bytes);
  return code == "?" ? dtype_in_numpy(ElementKind::boolean, bytes) : std::nullopt;
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
  const std::optional<DType> dtype = dtype_of_format(view.format, static_cast<std::size_t>(view.itemsize));
  if (!dtype) refuse_dtype(role, std::string("of the format '") + (view.format == nullptr ? "" : view.format) + "'");
  tensor.view.dtype = *dtype;
  if (PyBuffer_IsContiguous(&view, 'C') == 0) refuse_strides(role, Library::numpy);
  tensor.view.data = view.buf;
  tensor.view.count = view.itemsize > 0 ? static_cast<std::size_t>(view.len / view.itemsize) : 0;
  tensor.is_read_only = view.readonly != 0;
  return true;
}

}  // namespace col::python
