#include "memory.hpp"

#include <string>
#include <utility>
#include <vector>

#include <col/memory.hpp>

#include <nanobind/stl/string.h>

#include "context.hpp"
#include "errors.hpp"
#include "foreign.hpp"
#include "gil.hpp"
#include "group.hpp"

namespace col::python {
namespace {

// Freed when the last array on it dies.
class Memory {
 public:
  Memory(void* data, std::size_t bytes) : data_(data), bytes_(bytes) {}
  ~Memory() {
    // At the end of the interpreter, a thread that it has stopped may have the lock of a group for ever.
    if (data_ != nullptr && !has_closed()) without_gil([this] { detail::free_or_keep(data_); });
  }
  Memory(Memory&& other) noexcept : data_(std::exchange(other.data_, nullptr)), bytes_(other.bytes_) {}
  Memory& operator=(Memory&&) = delete;
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  static int lend(PyObject* self, Py_buffer* buffer, int flags) {
    const Memory& memory = *nb::inst_ptr<Memory>(self);
    return PyBuffer_FillInfo(buffer, self, memory.data_, static_cast<Py_ssize_t>(memory.bytes_), 0, flags);
  }

 private:
  void* data_;
  std::size_t bytes_;
};

std::size_t count_of(nb::handle shape) {
  std::size_t count = 1;
  const auto multiply = [&](nb::handle extent) {
    const Py_ssize_t value = PyNumber_AsSsize_t(extent.ptr(), PyExc_OverflowError);
    if (value == -1 && PyErr_Occurred() != nullptr) throw nb::python_error();
    if (value < 0) refuse("alloc: an axis of " + std::to_string(value) + " entries; a shape has no negative numbers");
    if (__builtin_mul_overflow(count, static_cast<std::size_t>(value), &count))
      refuse("alloc: more elements than memory can hold");
  };
  if (PyIndex_Check(shape.ptr()) != 0)
    multiply(shape);
  else
    for (const nb::handle extent : shape) multiply(extent);
  return count;
}

nb::object alloc(nb::object shape, nb::object dtype, nb::object group, nb::object timeout) {
  const DType type = dtype_from_python(dtype);
  std::size_t bytes = 0;
  if (__builtin_mul_overflow(count_of(shape), size_of(type), &bytes)) refuse("alloc: more bytes than memory can hold");
  const Options options = options_with(timeout, "alloc");
  if (!group.is_none() && !nb::isinstance<Group>(group)) refuse("alloc: group= takes a col.Group, not a name");
  const CurrentContext context;
  Group owner = group.is_none() ? without_gil([&] { return context->group("default"); }) : nb::cast<Group>(group);
  if (owner.device().type != Device::Type::cpu)
    throw Error(ErrorCode::unavailable, "alloc: numpy's arrays are in host memory, and this group's is on a GPU",
                owner.name(), owner.rank());
  void* const data = without_gil([&] { return col::alloc(bytes, owner, options); });
  const nb::object memory = nb::cast(Memory(data, bytes));
  return nb::module_::import_("numpy").attr("ndarray")(shape, nb::handle(numpy_dtype(type)), memory);
}

}  // namespace

// Memory that col.torch writes by torch itself, after a call.
void check_writable(std::uintptr_t address, std::size_t bytes) {
  detail::check_writable(reinterpret_cast<const void*>(address), bytes, "a tensor");  // NOLINT
}

void bind_memory(nb::module_& module) {
  module.def("check_writable", check_writable, nb::arg(), nb::arg());
  static PyType_Slot slots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(Memory::lend)}, {0, nullptr}};
  nb::class_<Memory>(module, "Memory", nb::type_slots(slots), nb::is_weak_referenceable(),
                     "What an array of alloc() lies on.");
  module.def("alloc", alloc, nb::arg("shape"), nb::arg("dtype") = "float32", nb::arg("group") = nb::none(),
             nb::kw_only(), nb::arg("timeout") = nb::none(),
             "Returns a numpy array of zeros on memory that the ranks of a node share: collectives on it copy less. "
             "Collective: every rank calls it with the same size. The memory is freed with the last array on it.");
}

}  // namespace col::python
