#include <string>
#include <vector>

#include <nanobind/stl/string.h>

#include "errors.hpp"
#include "foreign.hpp"
#include "tensor.hpp"

namespace col::python {
namespace {

struct TorchDType {
  PyObject* torch;
  DType dtype;
};

// torch's dtypes are objects that exist once.
DType dtype_of_torch(PyObject* torch_dtype, Role role) {
  static std::vector<TorchDType>* const known = [] {
    auto* const list = new std::vector<TorchDType>;
    const nb::object torch = imported("torch");
    for (std::size_t i = 0; i < kDTypes.size(); ++i) {
      const auto dtype = static_cast<DType>(i);
      const std::string name = dtype == DType::boolean ? "bool" : std::string(kDTypes[i].name);
      const nb::object found = nb::getattr(torch, name.c_str(), nb::none());
      if (!found.is_none()) list->push_back({found.inc_ref().ptr(), dtype});
    }
    return list;
  }();
  for (const TorchDType& pair : *known)
    if (pair.torch == torch_dtype) return pair.dtype;
  refuse_dtype(role, text_of(nb::handle(torch_dtype)));
}

// The names of torch's methods, so that none is made for a call.
struct Names {
  nb::object data_ptr = intern("data_ptr"), numel = intern("numel"), dtype = intern("dtype"),
             is_contiguous = intern("is_contiguous"), get_device = intern("get_device"), is_cpu = intern("is_cpu"),
             requires_grad = intern("requires_grad");

  static nb::object intern(const char* name) { return nb::steal(PyUnicode_InternFromString(name)); }
  static const Names& get() {
    static const Names* const names = new Names;
    return *names;
  }
};

nb::object call(PyObject* object, const nb::object& method) {
  PyObject* const result = PyObject_CallMethodObjArgs(object, method.ptr(), nullptr);
  if (result == nullptr) throw nb::python_error();
  return nb::steal(result);
}

nb::object get(PyObject* object, const nb::object& name) {
  PyObject* const result = PyObject_GetAttr(object, name.ptr());
  if (result == nullptr) throw nb::python_error();
  return nb::steal(result);
}

bool is_complex(DType dtype) {
  return row_of(dtype).kind == ElementKind::complex;
}

Device device_of(PyObject* object, Role role) {
  const Names& names = Names::get();
  if (get(object, names.is_cpu).is(nb::handle(Py_True))) return {};
  const nb::object device = nb::handle(object).attr("device");
  if (nb::cast<std::string>(device.attr("type")) != "cuda")
    refuse(role.text() + " is on " + text_of(device) + "; col moves memory of the CPU and of CUDA devices");
  return {Device::Type::cuda, static_cast<int>(PyLong_AsLong(call(object, names.get_device).ptr()))};
}

}  // namespace

void read_torch(PyObject* object, Role role, Tensor& tensor) {
  const Names& names = Names::get();
  tensor.library = Library::torch;
  try {
    tensor.view.dtype = dtype_of_torch(get(object, names.dtype).ptr(), role);
    if (!call(object, names.is_contiguous).is(nb::handle(Py_True))) refuse_strides(role, Library::torch);
    tensor.view.data = PyLong_AsVoidPtr(call(object, names.data_ptr).ptr());
    tensor.view.count = PyLong_AsSize_t(call(object, names.numel).ptr());
    tensor.view.device = device_of(object, role);
    // A view that conjugates, or negates, as it is read: its memory holds something else.
    if (is_complex(tensor.view.dtype) &&
        (nb::cast<bool>(nb::handle(object).attr("is_conj")()) || nb::cast<bool>(nb::handle(object).attr("is_neg")())))
      refuse(role.text() + " is a conjugate that torch has not computed yet; pass " + role.name +
             ".resolve_conj().resolve_neg()");
  } catch (nb::python_error& error) {  // a sparse tensor has no memory in one piece
    refuse(role.text() + " is no dense tensor: torch says '" + said(error) + "'");
  }
}

bool records_gradients(PyObject* object) {
  if (!get(object, Names::get().requires_grad).is(nb::handle(Py_True))) return false;
  return nb::cast<bool>(imported("torch").attr("is_grad_enabled")());
}

}  // namespace col::python
