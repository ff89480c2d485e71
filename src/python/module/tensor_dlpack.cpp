#include <string>

#include <col/multi_gpu.hpp>

#include "dlpack.hpp"
#include "errors.hpp"
#include "gil.hpp"
#include "tensor.hpp"

namespace col::python {
namespace {

void view_of(const dlpack::Tensor& lent, Role role, Tensor& tensor) {
  try {
    tensor.view = TensorView::from_dlpack(lent);
  } catch (const Error& error) {
    refuse(role.text() + ": " + error.message());
  }
}

template <class Managed>
std::shared_ptr<void> give_back_later(Managed* managed) {
  return {managed, [](void* lent) {
            auto* const tensor = static_cast<Managed*>(lent);
            if (tensor->deleter != nullptr) tensor->deleter(tensor);
          }};
}

void take(dlpack::VersionedTensor* managed, Role role, Tensor& tensor) {
  tensor.lease = give_back_later(managed);
  tensor.is_read_only = (managed->flags & dlpack::kReadOnly) != 0;
  view_of(managed->tensor, role, tensor);
}

[[noreturn]] void refuse_unlent(const std::string& why, Role role) {
  refuse(role.text() + " does not lend its memory: " + why);
}

// The stream that the library is to bring its work before, in DLPack's numbers. Without one, it takes the legacy
// default stream, which a call without a stream comes after, too. Memory of the host takes none.
nb::dict stream_for(PyObject* object, Stream stream) {
  nb::dict keywords;
  if (stream.handle == nullptr || !nb::hasattr(nb::handle(object), "__dlpack_device__")) return keywords;
  const auto device = nb::cast<nb::tuple>(nb::handle(object).attr("__dlpack_device__")());
  if (nb::cast<int>(device[0]) != dlpack::kCuda) return keywords;
  const auto ordinal = nb::cast<int>(device[1]);
  // An event from outside of a capture would spoil it: -1 asks for no order.
  const bool is_in_graph = without_gil([&] { return is_captured(stream, ordinal); });
  keywords["stream"] = is_in_graph ? nb::int_(-1) : nb::steal<nb::int_>(PyLong_FromVoidPtr(stream.handle));
  return keywords;
}

// New libraries say by the keyword that they may hand out read-only memory; old ones do not know it.
nb::object ask_for_capsule(PyObject* object, Stream stream) {
  const nb::object method = nb::handle(object).attr("__dlpack__");
  nb::dict keywords = stream_for(object, stream);
  try {
    return method(nb::arg("max_version") = nb::make_tuple(1, 0), **keywords);
  } catch (nb::python_error& error) {
    if (!error.matches(PyExc_TypeError)) throw;
  }
  return method(**keywords);
}

}  // namespace

bool read_dlpack(PyObject* object, Role role, Stream stream, Tensor& tensor) {
  if (!nb::hasattr(nb::handle(object), "__dlpack__")) return false;
  nb::object capsule;
  try {
    capsule = ask_for_capsule(object, stream);
  } catch (nb::python_error& error) {
    refuse_unlent(said(error), role);
  }
  if (void* const versioned = PyCapsule_GetPointer(capsule.ptr(), "dltensor_versioned")) {
    PyCapsule_SetName(capsule.ptr(), "used_dltensor_versioned");
    take(static_cast<dlpack::VersionedTensor*>(versioned), role, tensor);
    return true;
  }
  PyErr_Clear();
  auto* const managed = static_cast<dlpack::ManagedTensor*>(PyCapsule_GetPointer(capsule.ptr(), "dltensor"));
  if (managed == nullptr) throw nb::python_error();
  PyCapsule_SetName(capsule.ptr(), "used_dltensor");
  tensor.lease = give_back_later(managed);
  view_of(managed->tensor, role, tensor);
  return true;
}

bool read_exchanged(PyObject* object, PyObject* exchange_api, Role role, Stream stream, Tensor& tensor) {
  const auto* api = static_cast<const dlpack::ExchangeApi*>(PyCapsule_GetPointer(exchange_api, "dlpack_exchange_api"));
  while (api != nullptr && api->version.major != 1) api = api->previous;
  if (api == nullptr) return false;
  const auto check = [&](int failed) {
    if (failed != 0)
      refuse_unlent(PyErr_Occurred() != nullptr ? said(nb::python_error()) : "it does not say why", role);
  };
  // These functions bring nothing in order. torch's programs name their streams themselves.
  const auto come_after = [&] {
    const Device device = tensor.view.device;
    if (device.type != Device::Type::cuda || api->current_stream == nullptr || tensor.library == Library::torch) return;
    void* own = nullptr;
    check(api->current_stream(dlpack::kCuda, device.index, &own));
    put_in_order({own}, stream, tensor, role);
  };
  // This one is slower, and alone says whether the memory is read-only, which torch's never is.
  if (api->managed_from_object != nullptr && tensor.library != Library::torch) {
    dlpack::VersionedTensor* managed = nullptr;
    check(api->managed_from_object(object, &managed));
    take(managed, role, tensor);
    come_after();
    return true;
  }
  if (api->tensor_from_object == nullptr) return false;
  dlpack::Tensor lent;
  check(api->tensor_from_object(object, &lent));
  view_of(lent, role, tensor);
  come_after();
  return true;
}

}  // namespace col::python
