#include "foreign.hpp"

#include <array>
#include <string>
#include <unordered_map>

#include <nanobind/stl/string.h>

#include "errors.hpp"
#include "numpy_layout.hpp"

namespace col::python {
namespace {

bool is_subtype_of(PyTypeObject* type, const char* module_name, const char* class_name) {
  const nb::object module_object = imported(module_name);
  if (!module_object) return false;
  const nb::object found = nb::getattr(module_object, class_name, nb::none());
  return PyType_Check(found.ptr()) && PyType_IsSubtype(type, reinterpret_cast<PyTypeObject*>(found.ptr()));
}

TypeFacts find_facts(PyTypeObject* type) {
  TypeFacts facts{.type = type};
  if (is_subtype_of(type, "numpy", "ndarray")) {
    if (has_known_numpy_layout()) facts.kind = Kind::numpy;
    return facts;
  }
  facts.is_torch = is_subtype_of(type, "torch", "Tensor");
  const nb::object api = nb::getattr(reinterpret_cast<PyObject*>(type), "__dlpack_c_exchange_api__", nb::none());
  if (PyCapsule_IsValid(api.ptr(), "dlpack_exchange_api")) {
    facts.kind = Kind::exchanged;
    facts.exchange_api = api.inc_ref().ptr();  // kept with the type, for ever
  } else if (facts.is_torch) {
    facts.kind = Kind::torch;
  }
  return facts;
}

bool verify_numpy_layout() {
  const nb::object array = imported("numpy").attr("empty")(nb::make_tuple(2, 3), "float32");
  const auto& layout = *reinterpret_cast<const NumpyArray*>(array.ptr());
  const nb::object flags = array.attr("flags");
  return layout.ndim == 2 && layout.shape[0] == 2 && layout.shape[1] == 3 &&
         nb::cast<std::uintptr_t>(array.attr("ctypes").attr("data")) == reinterpret_cast<std::uintptr_t>(layout.data) &&
         layout.dtype == array.attr("dtype").ptr() &&
         nb::cast<int>(array.attr("dtype").attr("num")) == layout.dtype_layout().number &&
         layout.dtype_layout().byte_order == '=' && (layout.flags & kNumpyContiguous) != 0 &&
         (layout.flags & kNumpyWriteable) != 0;
}

}  // namespace

nb::object imported(const char* module_name) {
  PyObject* const modules = PyImport_GetModuleDict();
  return nb::borrow(PyDict_GetItemString(modules, module_name));
}

const TypeFacts& facts_of(PyTypeObject* type) {
  static auto* const known =
      new std::unordered_map<PyTypeObject*, TypeFacts>;  // never destroyed: threads may outlive it
  static const TypeFacts* last = nullptr;
  if (last != nullptr && last->type == type) return *last;
  auto found = known->find(type);
  if (found == known->end()) {
    TypeFacts facts = find_facts(type);
    Py_INCREF(reinterpret_cast<PyObject*>(type));  // its address stays its own
    found = known->emplace(type, facts).first;
  }
  last = &found->second;
  return *last;
}

bool has_known_numpy_layout() {
  static const bool is_known = verify_numpy_layout();
  return is_known;
}

bool is_in_ml_dtypes(DType dtype) {
  return row_of(dtype).is_narrow() && dtype != DType::float16;
}

std::optional<DType> dtype_in_numpy(ElementKind kind, std::size_t bytes) {
  for (std::size_t i = 0; i < kDTypes.size(); ++i)
    if (kDTypes[i].kind == kind && kDTypes[i].size == bytes && !is_in_ml_dtypes(static_cast<DType>(i)))
      return static_cast<DType>(i);
  return std::nullopt;
}

PyObject* numpy_dtype(DType dtype) {
  static std::array<PyObject*, kDTypeCount> made = {};
  if (is_opaque(dtype)) refuse("opaque elements have no numpy dtype");
  PyObject*& slot = made[static_cast<std::size_t>(dtype)];
  if (slot != nullptr) return slot;
  const nb::object make = nb::module_::import_("numpy").attr("dtype");
  nb::object made_now;
  if (is_in_ml_dtypes(dtype)) {
    const std::string name(to_string(dtype));
    try {
      made_now = make(nb::module_::import_("ml_dtypes").attr(name.c_str()));
    } catch (nb::python_error& error) {
      if (!error.matches(PyExc_ImportError)) throw;
      refuse("numpy has no " + name + " of its own: install the package ml_dtypes");
    }
  } else {
    made_now = make(dtype == DType::boolean ? std::string("bool") : std::string(to_string(dtype)));
  }
  slot = made_now.release().ptr();
  return slot;
}

DType dtype_from_python(nb::handle dtype) {
  // torch's print as "torch.float32", and numpy's have a name.
  std::string name = nb::cast<std::string>(nb::str(dtype));
  if (!PyUnicode_Check(dtype.ptr()) && !name.starts_with("torch.")) {
    const nb::object known = nb::module_::import_("numpy").attr("dtype")(dtype);
    name = nb::cast<std::string>(known.attr("name"));
  }
  if (name.starts_with("torch.")) name.erase(0, 6);
  return dtype_from_string(name == "bool" ? "boolean" : name);
}

}  // namespace col::python
