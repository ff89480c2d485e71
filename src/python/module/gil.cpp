#include "gil.hpp"

#include <cxxabi.h>
#include <unistd.h>

#include <atomic>

namespace col::python {
namespace {

std::atomic<bool> is_closed{false};

// Python ends its other threads by pthread_exit() when they take the GIL too late. That would unwind through functions
// that cannot be left by an exception, and end the process with a signal. Newer Pythons let such threads sleep, too.
[[noreturn]] void sleep_for_ever() noexcept {
  for (;;) pause();
}

bool is_main_thread() noexcept {
  return gettid() == getpid();
}

}  // namespace

void close() noexcept {
  is_closed = true;
}

bool has_closed() noexcept {
  return is_closed;
}

PyThreadState* let_go() noexcept {
  return PyEval_SaveThread();
}

void take_back(PyThreadState* thread) {
  if (is_closed && !is_main_thread()) sleep_for_ever();
  try {
    PyEval_RestoreThread(thread);
  } catch (abi::__forced_unwind&) {
    sleep_for_ever();
  }
}

PyObject* call_function(PyObject* function, PyObject* first, PyObject* second) {
  try {
    return PyObject_CallFunctionObjArgs(function, first, second, nullptr);
  } catch (abi::__forced_unwind&) {
    sleep_for_ever();
  }
}

void drop_reference(PyObject* object) noexcept {
  try {
    Py_DECREF(object);
  } catch (abi::__forced_unwind&) {
    sleep_for_ever();
  }
}

WithGil::WithGil() {
  if (is_closed && !is_main_thread()) sleep_for_ever();
  try {
    state_ = PyGILState_Ensure();
  } catch (abi::__forced_unwind&) {
    sleep_for_ever();
  }
}

WithGil::~WithGil() {
  PyGILState_Release(state_);
}

}  // namespace col::python
