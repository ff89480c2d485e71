// How a reduction combines two elements: by a name, col.premul_sum(), or a function of Python's.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include <col/types.hpp>

namespace nb = nanobind;

namespace col::python {

// What col.premul_sum() and col.user_op() return.
class OpObject {
 public:
  static OpObject premul_sum(double scale);
  static OpObject user(nb::object function, bool commutative, std::optional<std::string> name);

  const Op* premul() const { return premul_ ? &*premul_ : nullptr; }
  nb::handle function() const { return function_; }
  bool commutative() const { return commutative_; }
  const std::string& name() const { return name_; }

 private:
  std::optional<Op> premul_;
  nb::object function_;
  bool commutative_ = false;
  std::string name_;
};

// The operator of one call. A function of Python's may raise: its exception waits here until the call has ended,
// because it may run in any wait of the process, in any thread.
class Operation {
 public:
  // Throws invalid_argument for a name that is none.
  Op read(PyObject* op, const char* function);
  // Throws the exception that the function has raised, if it has. Requires: the GIL.
  void rethrow();

 private:
  class Function;
  std::shared_ptr<Function>
      function_;  // shared with the Op, and so with what libcol has in flight; null for most calls
};

void bind_operators(nb::module_& module);

}  // namespace col::python
