// The global interpreter lock (GIL): let go while libcol works, taken where libcol calls Python.
//
// libcol runs functions of the user's while it holds a lock of the group. So nobody may wait for such a lock and hold
// the GIL: every call of libcol that may wait for one is made by without_gil().
#pragma once

#include <Python.h>

#include <exception>
#include <optional>
#include <type_traits>
#include <utility>

namespace col::python {

// Says that the interpreter ends. From here on, a thread that comes back from libcol stays where it is: it must not
// touch what the interpreter takes down. Requires: the GIL.
void close() noexcept;

// Lets go of the GIL, and takes it again.
PyThreadState* let_go() noexcept;
void take_back(PyThreadState* thread);

template <class Call>
auto without_gil(Call&& call) -> std::invoke_result_t<Call> {
  using Result = std::invoke_result_t<Call>;
  std::exception_ptr error;
  PyThreadState* const thread = let_go();
  if constexpr (std::is_void_v<Result>) {
    try {
      call();
    } catch (...) {
      error = std::current_exception();
    }
    take_back(thread);
    if (error) std::rethrow_exception(error);
  } else {
    std::optional<Result> result;
    try {
      result.emplace(call());
    } catch (...) {
      error = std::current_exception();
    }
    take_back(thread);
    if (error) std::rethrow_exception(error);
    return std::move(*result);
  }
}

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
