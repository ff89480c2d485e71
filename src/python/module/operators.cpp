#include "operators.hpp"

#include <exception>
#include <stdexcept>
#include <utility>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include "errors.hpp"
#include "foreign.hpp"
#include "gil.hpp"

namespace col::python {

// libcol keeps copies of the Op that holds this, and drops the last one in a thread without the GIL.
class Operation::Function {
 public:
  explicit Function(nb::handle function) : function_(held(function.inc_ref().ptr())) {}
  ~Function() {
    const WithGil gil;
    error_.reset();
  }
  Function(const Function&) = delete;
  Function& operator=(const Function&) = delete;

  // The others learn from the message why the call failed; this rank gets the exception itself.
  void call(const void* left, const void* right, void* result, std::size_t count, DType dtype) {
    const WithGil gil;
    try {
      const std::size_t bytes = count * size_of(dtype);
      const nb::object copy = nb::module_::import_("numpy").attr("copyto");
      const nb::object combined = called(function_.get(), array(left, bytes, dtype), array(right, bytes, dtype));
      called(copy.ptr(), array(result, bytes, dtype, PyBUF_WRITE), combined);
    } catch (nb::python_error& error) {
      const std::string what = std::string(nb::type_name(error.type()).c_str()) + ": " + said(error);
      if (!error_) error_.emplace(std::move(error));
      throw std::runtime_error(what);
    }
  }

  void rethrow() {
    if (!error_) return;
    nb::python_error error = std::move(*error_);
    error_.reset();
    throw error;
  }

 private:
  static nb::object called(PyObject* function, const nb::object& first, const nb::object& second) {
    nb::object returned = nb::steal(call_function(function, first.ptr(), second.ptr()));
    if (!returned) throw nb::python_error();
    return returned;
  }

  static nb::object array(const void* data, std::size_t bytes, DType dtype, int access = PyBUF_READ) {
    // frombuffer() refuses an empty buffer, and libcol does not combine nothing.
    const nb::object memory = nb::steal(
        PyMemoryView_FromMemory(static_cast<char*>(const_cast<void*>(data)), static_cast<Py_ssize_t>(bytes), access));
    return nb::module_::import_("numpy").attr("frombuffer")(memory, nb::handle(numpy_dtype(dtype)));
  }

  std::shared_ptr<PyObject> function_;
  std::optional<nb::python_error> error_;  // guarded by the GIL
};

OpObject OpObject::premul_sum(double scale) {
  OpObject made;
  made.premul_ = Op::premul_sum(scale);
  made.name_ = "premul_sum";
  return made;
}

OpObject OpObject::user(nb::object function, bool commutative, std::optional<std::string> name) {
  if (PyCallable_Check(function.ptr()) == 0) refuse("user_op: the operator must be a function of two arrays");
  OpObject made;
  made.name_ = name ? *name : nb::cast<std::string>(nb::str(nb::getattr(function, "__name__", nb::str("user"))));
  made.function_ = std::move(function);
  made.commutative_ = commutative;
  return made;
}

Op Operation::read(PyObject* op, const char* function) {
  if (PyUnicode_Check(op)) {
    static PyObject* const sum = PyUnicode_InternFromString("sum");
    if (op == sum) return ReduceOp::sum;
    Py_ssize_t length = 0;
    const char* const text = PyUnicode_AsUTF8AndSize(op, &length);
    if (text == nullptr) throw nb::python_error();
    const std::string_view name(text, static_cast<std::size_t>(length));
    return reduce_op_from_string(name == "prod" ? "product" : name);
  }
  const OpObject* made = nullptr;
  OpObject plain;
  if (nb::inst_check(op) && nb::isinstance<OpObject>(op)) {
    made = nb::inst_ptr<OpObject>(op);
  } else if (PyCallable_Check(op) != 0) {
    plain = OpObject::user(nb::borrow(op), false, std::nullopt);
    made = &plain;
  } else {
    refuse(std::string(function) + ": op must be a name such as 'sum', col.premul_sum(scale), or a function of two " +
           "arrays, not a " + nb::inst_name(op).c_str());
  }
  if (made->premul() != nullptr) return *made->premul();
  function_ = std::make_shared<Function>(made->function());
  return Op::user([shared = function_](const void* left, const void* right, void* result, std::size_t count,
                                       DType dtype) { shared->call(left, right, result, count, dtype); },
                  made->commutative(), made->name());
}

void Operation::rethrow() {
  if (function_) function_->rethrow();
}

void bind_operators(nb::module_& module) {
  nb::class_<OpObject>(module, "Op", nb::is_weak_referenceable(),
                       "How a reduction combines two elements: a name, as in op=\"max\", premul_sum() or user_op(). "
                       "Integers wrap: \"avg\" adds in the array's type, divides by the number of ranks and rounds "
                       "toward zero, so two int8 of 100 make -28.")
      .def_prop_ro("name", &OpObject::name)
      .def("__repr__", [](const OpObject& op) { return "<col.Op " + op.name() + ">"; });
  module.def("premul_sum", &OpObject::premul_sum, nb::arg("scale"),
             "Each rank multiplies its input by its own scale before the sum. For integer types, scale must be a whole "
             "number.");
  module.def("user_op", &OpObject::user, nb::arg("function"), nb::kw_only(), nb::arg("commutative") = false,
             nb::arg("name") = nb::none(),
             "A reduction by an associative function of two numpy arrays of one dimension, which returns their "
             "combination, element by element. If it is not said to be commutative, it is applied in rank order. All "
             "ranks must pass the same name; without one it is the function's. The arrays are valid only during the "
             "call. The function must not use the group.");
}

}  // namespace col::python
