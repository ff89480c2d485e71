// What becomes of exceptions at the border to C.
#include <memory>
#include <new>
#include <stdexcept>
#include <string>

#include "capi/guard.hpp"
#include "support/catch.hpp"

namespace col::capi {
namespace {

struct Freed {
  void operator()(col_error* error) const { col_error_free(error); }
};
using ErrorPtr = std::unique_ptr<col_error, Freed>;

template <class Thrown>
ErrorPtr error_of(const Thrown& thrown) {
  col_error* error = nullptr;
  const std::int32_t code = guarded(&error, [&] { throw thrown; });
  REQUIRE(error != nullptr);
  CHECK(col_error_code(error) == code);
  CHECK(guarded(nullptr, [&] { throw thrown; }) == code);  // nobody wants the object
  return ErrorPtr(error);
}

}  // namespace

TEST_CASE("capi: an Error keeps all that it says", "[capi]") {
  for (std::int32_t code = 1; code < col_code_count(); ++code) {
    const Error thrown(static_cast<ErrorCode>(code - 1), "what happened", "some group", 3, 7);
    const ErrorPtr error = error_of(thrown);
    CHECK(col_error_code(error.get()) == code);
    CHECK(col_error_code_name(error.get()) == to_string(thrown.code()));
    CHECK(col_error_text(error.get()) == std::string(thrown.what()));
    CHECK(col_error_message(error.get()) == std::string("what happened"));
    CHECK(col_error_group(error.get()) == std::string("some group"));
    CHECK(col_error_rank(error.get()) == 3);
    CHECK(col_error_world_rank(error.get()) == 7);
    CHECK(col_error_is_loss(error.get()) == (code == COL_ERROR_PEER_LOST));
  }
}

TEST_CASE("capi: without memory there is an error object all the same, and it can be freed", "[capi]") {
  const ErrorPtr error = error_of(std::bad_alloc());
  CHECK(col_error_code(error.get()) == COL_ERROR_RESOURCE);
  CHECK(std::string(col_error_message(error.get())).find("memory ran out") == 0);
  const ErrorPtr same = error_of(std::bad_alloc());
  CHECK(same.get() == error.get());
}

TEST_CASE("capi: exceptions of others are internal errors with their words", "[capi]") {
  const ErrorPtr known = error_of(std::runtime_error("no luck"));
  CHECK(col_error_code(known.get()) == COL_ERROR_INTERNAL);
  CHECK(std::string(col_error_message(known.get())).find("no luck") != std::string::npos);
  const ErrorPtr unknown = error_of(42);
  CHECK(col_error_code(unknown.get()) == COL_ERROR_INTERNAL);
  CHECK(std::string(col_error_message(unknown.get())).find("without words") != std::string::npos);
}

TEST_CASE("capi: success stores no error", "[capi]") {
  int other = 0;
  auto* error = reinterpret_cast<col_error*>(&other);  // what was there before
  CHECK(guarded(&error, [] {}) == COL_OK);
  CHECK(error == nullptr);
}

}  // namespace col::capi
