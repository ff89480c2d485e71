// The global interpreter lock (GIL): let go while libcol works, taken where libcol calls Python.
//
// libcol runs functions of the user's while it holds a lock of the group. So nobody may wait for such a lock and hold
// the GIL: every call of libcol that may wait for one is made by without_gil().
#pragma once

#include <Python.h>

#include <memory>
#include <type_traits>

namespace col::python {

// Says that the interpreter ends. From here on, a thread that comes back from libcol stays where it is: it must not
// touch what the interpreter takes down. Waits a second at most, without the GIL, for libcol's threads that are in
// Python. Requires: the GIL.
void close() noexcept;
bool has_closed() noexcept;

// Is without the GIL from its begin to its end.
class WithoutGil {
 public:
  WithoutGil() noexcept;
  ~WithoutGil();
  WithoutGil(const WithoutGil&) = delete;
  WithoutGil& operator=(const WithoutGil&) = delete;

 private:
  PyThreadState* const thread_;
};

template <class Call>
auto without_gil(Call&& call) -> std::invoke_result_t<Call> {
  const WithoutGil released;
  return call();
}

// For a thread that is not the interpreter's own, such as those of libcol: what runs Python there. If the interpreter
// ends meanwhile, the thread stays inside. Requires: the GIL.
//
// A new reference to what the function returns, or null with Python's error set. `second` may be null.
PyObject* call_function(PyObject* function, PyObject* first, PyObject* second = nullptr);
// Takes over a reference, which any thread may drop.
std::shared_ptr<PyObject> held(PyObject* reference);

// Holds the GIL in a thread that may not have it.
class WithGil {
 public:
  WithGil();
  ~WithGil();
  WithGil(const WithGil&) = delete;
  WithGil& operator=(const WithGil&) = delete;

 private:
  PyGILState_STATE state_;
};

}  // namespace col::python
