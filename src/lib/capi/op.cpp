// Operators of the user.
#include <memory>
#include <string>

#include <col/types.hpp>

#include "capi/convert.hpp"
#include "capi/guard.hpp"
#include "capi/handles.hpp"
#include "capi/sized.hpp"

namespace col::capi {
namespace {

// The function and what it works with. All copies of the operator share it.
struct UserFunction {
  col_op_function function;
  void* user;
  void (*release)(void*) = nullptr;

  UserFunction(col_op_function function_, void* user_) : function(function_), user(user_) {}
  ~UserFunction() {
    if (release != nullptr) release(user);
  }
  UserFunction(const UserFunction&) = delete;
  UserFunction& operator=(const UserFunction&) = delete;
};

}  // namespace
}  // namespace col::capi

using namespace col::capi;  // NOLINT(google-build-using-namespace): the functions below have no namespace

extern "C" {

int32_t col_op_create(const col_op_spec* spec, col_op** op, col_error** error) {
  return guarded(error, [&] {
    col_op*& made = result(op, "op");
    const col_op_spec known = known_part(spec, "col_op_spec");
    check_reserved(known.reserved, "col_op_spec");
    if (known.function == nullptr) refuse("col_op_spec: function is NULL; an operator needs one");
    const auto shared = std::make_shared<UserFunction>(known.function, known.user);
    const auto call = [shared](const void* left, const void* right, void* out, std::size_t count, col::DType dtype) {
      shared->function(left, right, out, count, static_cast<std::uint32_t>(dtype), shared->user);
    };
    const std::string name = known.name == nullptr ? "user" : known.name;
    made = new col_op{col::Op::user(call, known.commutative != 0, name)};
    shared->release = known.release;  // nothing can fail any more
  });
}

void col_op_free(col_op* op) {
  delete op;
}

}  // extern "C"
