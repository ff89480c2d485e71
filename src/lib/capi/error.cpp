// Error objects, and how exceptions become such.
#include <exception>
#include <new>

#include <fmt/format.h>

#include "capi/guard.hpp"
#include "capi/handles.hpp"

namespace col::capi {
namespace {

// Made when the library is loaded, as there is no memory for it when it is needed. Never destroyed: at exit, other
// threads may still be inside a call.
const col_error& kNoMemory =
    *new col_error{Error(ErrorCode::resource, "memory ran out; use smaller buffers, or fewer of them")};

constexpr std::int32_t code_of(ErrorCode code) noexcept {
  return static_cast<std::int32_t>(code) + 1;  // 0 is COL_OK
}

std::int32_t out_of_memory(col_error** error) noexcept {
  if (error != nullptr) *error = const_cast<col_error*>(&kNoMemory);
  return COL_ERROR_RESOURCE;
}

std::int32_t store_error(const Error& cause, col_error** error) noexcept {
  if (error != nullptr) {
    *error = new (std::nothrow) col_error{cause};
    if (*error == nullptr) return out_of_memory(error);
  }
  return code_of(cause.code());
}

std::int32_t store_foreign(std::string_view what, col_error** error) noexcept {
  try {
    return store_error(
        Error(ErrorCode::internal,
              fmt::format("an exception of another library, or of the program: {}; please report it", what)),
        error);
  } catch (...) {
    return out_of_memory(error);
  }
}

}  // namespace

std::int32_t report(col_error** error) noexcept {
  try {
    throw;
  } catch (const Error& cause) {
    return store_error(cause, error);
  } catch (const std::bad_alloc&) {
    return out_of_memory(error);
  } catch (const std::exception& cause) {
    return store_foreign(cause.what(), error);
  } catch (...) {
    return store_foreign("one without words", error);
  }
}

}  // namespace col::capi

using namespace col::capi;  // NOLINT(google-build-using-namespace): the functions below have no namespace

extern "C" {

int32_t col_error_code(const col_error* error) {
  return error == nullptr ? COL_OK : code_of(error->value.code());
}
const char* col_error_code_name(const col_error* error) {
  return col_code_name(col_error_code(error));
}
const char* col_error_text(const col_error* error) {
  return error == nullptr ? "" : error->value.what();
}
const char* col_error_message(const col_error* error) {
  return error == nullptr ? "" : error->value.message().c_str();
}
const char* col_error_group(const col_error* error) {
  return error == nullptr ? "" : error->value.group().c_str();
}
int32_t col_error_rank(const col_error* error) {
  return error == nullptr ? -1 : error->value.rank();
}
int32_t col_error_world_rank(const col_error* error) {
  return error == nullptr ? -1 : error->value.world_rank();
}
int32_t col_error_is_loss(const col_error* error) {
  return error != nullptr && error->value.is_loss() ? 1 : 0;
}
void col_error_free(col_error* error) {
  if (error != &kNoMemory) delete error;
}

}  // extern "C"
