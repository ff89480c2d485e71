#include "tensor.hpp"

#include <string>

#include <nanobind/stl/string.h>

#include <col/multi_gpu.hpp>

#include "errors.hpp"
#include "foreign.hpp"
#include "gil.hpp"
#include "numpy_layout.hpp"

namespace col::python {
namespace {

[[noreturn]] void refuse_tensor(PyObject* object, Role role) {
  const std::string type = nb::inst_name(object).c_str();
  std::string what = role.text() + " is a " + type + ", which is no array; ";
  if (PyList_Check(object) || PyTuple_Check(object) || PyLong_Check(object) || PyFloat_Check(object))
    what += "write numpy.array(" + std::string(role.name) + ")";
  else if (object == Py_None)
    what += "pass a numpy array, a torch tensor, or anything that has DLPack or the buffer protocol";
  else
    what +=
        "it needs DLPack, the buffer protocol or __cuda_array_interface__. For other objects there are "
        "broadcast_object, allgather_object and their like";
  refuse(what);
}

Tensor read(PyObject* object, Role role, Stream stream) {
  Tensor tensor{.object = object};
  const TypeFacts& facts = facts_of(Py_TYPE(object));
  switch (facts.kind) {
    case Kind::numpy:
      read_numpy(object, role, tensor);
      return tensor;
    case Kind::torch:
      read_torch(object, role, tensor);
      return tensor;
    case Kind::exchanged:
      if (facts.is_torch) tensor.library = Library::torch;
      // Complex tensors of torch may be conjugates that are not computed yet, which only torch's methods tell.
      if (read_exchanged(object, facts.exchange_api, role, stream, tensor) &&
          !(facts.is_torch && row_of(tensor.view.dtype).kind == ElementKind::complex))
        return tensor;
      if (!facts.is_torch) break;
      read_torch(object, role, tensor);
      return tensor;
    case Kind::other:
      break;
  }
  if (read_cuda_array(object, role, stream, tensor) || read_buffer(object, role, tensor) ||
      read_dlpack(object, role, stream, tensor))
    return tensor;
  refuse_tensor(object, role);
}

}  // namespace

void put_in_order(Stream earlier, Stream later, const Tensor& tensor, Role role) {
  if (tensor.view.empty() || tensor.view.device.type != Device::Type::cuda) return;
  try {
    without_gil([&] { order_streams(earlier, later, tensor.view.data); });
  } catch (const Error& error) {
    throw Error(error.code(), role.text() + ": the stream that its library works in: " + error.message());
  }
}

void refuse_strides(Role role, Library library) {
  const std::string name = role.name;
  const bool is_input = name != "out";
  const std::string contiguous =
      library == Library::torch ? name + ".contiguous()" : "numpy.ascontiguousarray(" + name + ")";
  refuse(role.text() + " is not contiguous in C order; " +
         (is_input ? "pass " + contiguous : "pass a contiguous array, and copy from there"));
}

void refuse_dtype(Role role, const std::string& dtype) {
  std::string names;
  for (const DTypeRow& row : kDTypes) names += (names.empty() ? "" : ", ") + std::string(row.name);
  refuse(role.text() + " has the dtype " + dtype +
         ", which col does not know; convert it, or pass a view of it as one of " + names);
}

Tensor as_input(PyObject* object, Role role, Stream stream) {
  return read(object, role, stream);
}

void require_writable(const Tensor& tensor, Role role) {
  if (tensor.is_read_only)
    refuse(
        role.text() + " is read-only memory, as arrays from Ray's object store are, and the call would write to it; " +
        "pass a copy" + (tensor.library == Library::numpy ? std::string(": ") + role.name + ".copy()" : std::string()));
  if (tensor.library == Library::torch && records_gradients(tensor.object))
    refuse(role.text() + " requires grad, and the call would write to it behind torch's back; pass " + role.name +
           ".detach() or " + role.name + ".data, or call it under torch.no_grad()");
}

Tensor as_output(PyObject* object, Role role, Stream stream) {
  Tensor tensor = read(object, role, stream);
  require_writable(tensor, role);
  return tensor;
}

std::vector<Py_ssize_t> shape_of(const Tensor& tensor) {
  if (facts_of(Py_TYPE(tensor.object)).kind == Kind::numpy) {
    const auto& array = *reinterpret_cast<const NumpyArray*>(tensor.object);
    return {array.shape, array.shape + array.ndim};
  }
  const nb::object shape = nb::getattr(nb::handle(tensor.object), "shape", nb::none());
  if (!PyTuple_Check(shape.ptr())) return {static_cast<Py_ssize_t>(tensor.view.count)};
  std::vector<Py_ssize_t> extents;
  for (const nb::handle extent : nb::borrow<nb::tuple>(shape)) extents.push_back(nb::cast<Py_ssize_t>(extent));
  return extents;
}

nb::object new_array(const Tensor& model, const std::vector<Py_ssize_t>& shape, Role role) {
  nb::list extents;
  for (const Py_ssize_t extent : shape) extents.append(extent);
  if (model.library == Library::numpy) {
    static PyObject* const empty = nb::object(nb::module_::import_("numpy").attr("empty")).release().ptr();
    return nb::handle(empty)(nb::tuple(extents), nb::handle(model.numpy_dtype));
  }
  if (model.library == Library::torch) return nb::handle(model.object).attr("new_empty")(nb::tuple(extents));
  refuse(std::string(role.function) +
         ": pass out=, an array for the result: col makes numpy arrays and torch tensors "
         "alone, and x is a " +
         text_of(nb::handle(reinterpret_cast<PyObject*>(Py_TYPE(model.object))).attr("__name__")));
}

}  // namespace col::python
