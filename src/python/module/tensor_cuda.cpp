// __cuda_array_interface__, version 2 and 3: cupy, numba and others have it beside DLPack. Version 3 says in which
// stream the array's library works on it, so that it serves as well as DLPack, and makes no capsule. Version 2 says
// nothing: where there is DLPack, the library brings its work in order by that.
#include <array>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>

#include <nanobind/stl/string.h>

#include "errors.hpp"
#include "foreign.hpp"
#include "tensor.hpp"

namespace col::python {
namespace {

// "<f4" and the like.
DType dtype_of_typestr(const std::string& typestr, Role role) {
  constexpr std::array kKinds = {std::pair{'i', ElementKind::signed_integer},
                                 std::pair{'u', ElementKind::unsigned_integer}, std::pair{'f', ElementKind::floating},
                                 std::pair{'c', ElementKind::complex}, std::pair{'b', ElementKind::boolean}};
  for (const auto& [letter, kind] : kKinds) {
    if (typestr.size() < 3 || typestr[1] != letter || typestr[0] == '>') continue;
    if (const auto dtype = dtype_in_numpy(kind, std::strtoul(typestr.c_str() + 2, nullptr, 10))) return *dtype;
  }
  refuse_dtype(role, typestr);
}

// Nothing if no order is asked for.
std::optional<Stream> stream_of(const nb::dict& interface, Role role) {
  const nb::object stream = interface.contains("stream") ? nb::object(interface["stream"]) : nb::object(nb::none());
  if (stream.is_none()) return std::nullopt;
  const std::uintptr_t handle = PyLong_Check(stream.ptr()) ? PyLong_AsUnsignedLongLong(stream.ptr()) : 0;
  const bool is_none = PyErr_Occurred() != nullptr;
  PyErr_Clear();
  if (handle == 0 || is_none) {
    refuse(role.text() + ": the 'stream' of its __cuda_array_interface__ is " + text_of(stream) +
           ", which names no stream; it is None, 1 (the legacy default stream), 2 (the thread's), or a cudaStream_t");
  }
  return Stream{reinterpret_cast<void*>(handle)};
}

}  // namespace

bool read_cuda_array(PyObject* object, Role role, Stream stream, Tensor& tensor) {
  const nb::object found = nb::getattr(nb::handle(object), "__cuda_array_interface__", nb::none());
  if (!PyDict_Check(found.ptr())) return false;
  const auto interface = nb::borrow<nb::dict>(found);
  const int version = interface.contains("version") ? nb::cast<int>(interface["version"]) : 0;
  if (version < 3 && nb::hasattr(nb::handle(object), "__dlpack__")) return false;
  const auto data = nb::cast<nb::tuple>(interface["data"]);
  tensor.view.dtype = dtype_of_typestr(nb::cast<std::string>(interface["typestr"]), role);
  tensor.view.data = PyLong_AsVoidPtr(nb::handle(data[0]).ptr());
  tensor.is_read_only = nb::cast<bool>(data[1]);
  const auto shape = nb::cast<nb::tuple>(interface["shape"]);
  const nb::object strides = interface.contains("strides") ? nb::object(interface["strides"]) : nb::object(nb::none());
  tensor.view.count = 1;
  for (const nb::handle extent : shape) tensor.view.count *= nb::cast<std::size_t>(extent);
  if (!strides.is_none()) {
    std::size_t expected = size_of(tensor.view.dtype);
    for (std::size_t i = nb::len(shape); i-- > 0;) {
      const auto extent = nb::cast<std::size_t>(shape[i]);
      if (extent > 1 && nb::cast<std::int64_t>(strides[i]) != static_cast<std::int64_t>(expected))
        refuse_strides(role, Library::other);
      expected *= extent;
    }
  }
  // The interface does not name the device; its libraries have an object that does.
  const nb::object device = nb::getattr(nb::handle(object), "device", nb::none());
  const nb::object id = device.is_none() ? nb::object(nb::none()) : nb::getattr(device, "id", nb::none());
  tensor.view.device = {Device::Type::cuda, id.is_none() ? 0 : nb::cast<int>(id)};
  if (const std::optional<Stream> own = stream_of(interface, role)) put_in_order(*own, stream, tensor, role);
  return true;
}

}  // namespace col::python
