// What every function of <col/col.h> does around its work: no exception leaves it.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include <col/col.h>
#include <col/error.hpp>

namespace col::capi {

// The code of the exception that is being handled. Stores an error object for it, unless `error` is null.
std::int32_t report(col_error** error) noexcept;

// Runs `body`, and turns what it throws into a code and an error object.
template <class Body>
std::int32_t guarded(col_error** error, const Body& body) noexcept {
  if (error != nullptr) *error = nullptr;
  try {
    body();
    return COL_OK;
  } catch (...) {
    return report(error);
  }
}

// Throws invalid_argument.
template <class... Args>
[[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) {
  throw Error(ErrorCode::invalid_argument, fmt::format(format, std::forward<Args>(args)...));
}

// What a pointer of the caller points to, which must not be NULL. `role` is the name of the argument.
template <class T>
T& required(T* pointer, std::string_view role) {
  if (pointer == nullptr) refuse("{} is NULL; this function needs it", role);
  return *pointer;
}

// The place of a result: NULL or zero until the function has succeeded.
template <class T>
T& result(T* place, std::string_view role) {
  if (place == nullptr) refuse("the address for the result '{}' is NULL; pass that of a variable", role);
  return *place = T{};
}

}  // namespace col::capi
