// Any array of Python's as a TensorView.
//
// Accepted are numpy arrays, torch tensors, and whatever has DLPack, the buffer protocol or __cuda_array_interface__.
// Neither numpy nor torch is imported: who passes an array has done so.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <string>
#include <vector>

#include <col/types.hpp>

namespace nb = nanobind;

namespace col::python {

// Which library an array is of, and so which one makes another of its kind.
enum class Library { numpy, torch, other };

struct Tensor {
  TensorView view = {};
  Library library = Library::other;
  bool is_read_only = false;
  PyObject* object = nullptr;        // borrowed: the argument of the call
  std::shared_ptr<void> lease = {};  // what a lender gets back in the end, with the GIL; shared, so that it is opaque
  PyObject* numpy_dtype = nullptr;   // borrowed, of a numpy array
};

// What a tensor is for: the messages name it.
struct Role {
  const char* function;
  const char* name;

  std::string text() const { return std::string(function) + ": " + name; }
};

// Throws invalid_argument, which says what to write instead, for what is no tensor, has no dtype of col's, or is not
// contiguous.
//
// `stream` is the one that the call names, if it names one. The call comes after what the array's own library does with
// it, if that says in which stream it works: torch and numpy do not.
Tensor as_input(PyObject* object, Role role, Stream stream);
// Throws it also for what must not be written: an array that is read-only, or a torch tensor that requires grad. Of
// memory whose library has no such flag, libcol looks how it is mapped.
Tensor as_output(PyObject* object, Role role, Stream stream);
// The same for one that was read as an input.
void require_writable(const Tensor& tensor, Role role);

// A new array of the library of `model` and its dtype, not initialized. Throws invalid_argument if that library is
// neither numpy nor torch.
nb::object new_array(const Tensor& model, const std::vector<Py_ssize_t>& shape, Role role);
std::vector<Py_ssize_t> shape_of(const Tensor& tensor);

// ---- The ways to read one; each is a file ---------------------------------------------------------------------------

// Nothing was found out if these return false.
bool read_cuda_array(PyObject* object, Role role, Stream stream, Tensor& tensor);
bool read_buffer(PyObject* object, Role role, Tensor& tensor);
bool read_dlpack(PyObject* object, Role role, Stream stream, Tensor& tensor);
// By the C functions of the object's type, which the type has to keep.
bool read_exchanged(PyObject* object, PyObject* exchange_api, Role role, Stream stream, Tensor& tensor);
// Requires: a numpy array, a torch tensor.
void read_numpy(PyObject* object, Role role, Tensor& tensor);
void read_torch(PyObject* object, Role role, Tensor& tensor);
// Whether torch refuses to write it in place: it requires grad, and gradients are being recorded.
bool records_gradients(PyObject* object);

// A call in stream `later` comes after what stream `earlier` holds, in which the tensor's library works on it.
void put_in_order(Stream earlier, Stream later, const Tensor& tensor, Role role);

[[noreturn]] void refuse_strides(Role role, Library library);
[[noreturn]] void refuse_dtype(Role role, const std::string& dtype);

}  // namespace col::python
