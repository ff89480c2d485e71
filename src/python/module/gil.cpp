#include "gil.hpp"

#include <cxxabi.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>

namespace col::python {
namespace {

std::atomic<bool> is_closed{false};

// The threads of others that are in Python at the moment. They are on their way out when the interpreter ends, and some
// functions on it, of torch for one, cannot be left by pthread_exit(): a destructor that takes the GIL again.
class Visitors {
 public:
  void come() {
    const std::lock_guard lock(mutex_);
    ++count_;
  }
  void go() {
    const std::lock_guard lock(mutex_);
    if (--count_ == 0) none_.notify_all();
  }
  void wait_until_gone(std::chrono::milliseconds limit) {
    std::unique_lock lock(mutex_);
    none_.wait_for(lock, limit, [this] { return count_ == 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable none_;
  int count_ = 0;
};
Visitors& visitors() {
  static auto* const all = new Visitors;  // never destroyed: threads may come at any time
  return *all;
}
// A function of the user's may stay for ever.
constexpr std::chrono::milliseconds kMostPatience{1000};

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
  PyThreadState* const thread = PyEval_SaveThread();
  visitors().wait_until_gone(kMostPatience);
  PyEval_RestoreThread(thread);
}

bool has_closed() noexcept {
  return is_closed;
}

WithoutGil::WithoutGil() noexcept : thread_(PyEval_SaveThread()) {}

WithoutGil::~WithoutGil() {
  if (is_closed && !is_main_thread()) sleep_for_ever();
  try {
    PyEval_RestoreThread(thread_);
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

std::shared_ptr<PyObject> held(PyObject* reference) {
  return {reference, [](PyObject* object) {
            const WithGil gil;
            try {
              Py_DECREF(object);
            } catch (abi::__forced_unwind&) {
              sleep_for_ever();
            }
          }};
}

WithGil::WithGil() {
  visitors().come();
  if (is_closed && !is_main_thread()) {
    visitors().go();
    sleep_for_ever();
  }
  try {
    state_ = PyGILState_Ensure();
  } catch (abi::__forced_unwind&) {
    sleep_for_ever();
  }
}

WithGil::~WithGil() {
  PyGILState_Release(state_);
  visitors().go();
}

}  // namespace col::python
