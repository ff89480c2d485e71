// Structs of an older and of a newer version than the library's.
#include <cstddef>
#include <cstdint>
#include <string>

#include "capi/sized.hpp"
#include "support/catch.hpp"

namespace col::capi {
namespace {

// One struct in three versions.
struct First {
  std::size_t size;
  std::int64_t a;
};
struct Second {
  std::size_t size;
  std::int64_t a, b;
};
struct Third {
  std::size_t size;
  std::int64_t a, b, c;
};

// What a library of the version `Library` makes of a program's struct.
template <class Library, class Program>
Library seen(const Program& given) {
  return known_part(reinterpret_cast<const Library*>(&given), "the_struct", sizeof(First));
}

template <class Library, class Program>
std::string refusal(const Program& given) {
  try {
    seen<Library>(given);
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::invalid_argument);
    return error.message();
  }
  return "";
}

}  // namespace

TEST_CASE("capi: a program of an older version gets defaults for what it does not know", "[capi]") {
  struct {
    First given{sizeof(First), 5};
    std::int64_t beyond[2] = {-1, -1};  // belongs to the program, and is not read
  } memory;
  const Third third = seen<Third>(memory.given);
  CHECK(third.a == 5);
  CHECK(third.b == 0);
  CHECK(third.c == 0);
}

TEST_CASE("capi: a program of a newer version may set what both know", "[capi]") {
  CHECK(seen<First>(Third{sizeof(Third), 5, 0, 0}).a == 5);
  const Second second = seen<Second>(Third{sizeof(Third), 5, 6, 0});
  CHECK(second.a == 5);
  CHECK(second.b == 6);
}

TEST_CASE("capi: what a newer version sets and the library does not know is refused", "[capi]") {
  CHECK(refusal<Second>(Third{sizeof(Third), 5, 6, 1}).find("the_struct: byte 24 is set") == 0);
  CHECK(refusal<First>(Third{sizeof(Third), 5, 0, std::int64_t{1} << 56}).find("the_struct: byte 31 is set") == 0);
}

TEST_CASE("capi: a size that no version has is refused", "[capi]") {
  for (const std::size_t size : {std::size_t{0}, std::size_t{8}, std::size_t{15}, std::size_t{17}, std::size_t{20},
                                 std::size_t{4104}, ~std::size_t{0}, ~std::size_t{7}}) {
    INFO(size);
    CHECK(refusal<Third>(Third{size, 0, 0, 0}).find("set its first member with sizeof") != std::string::npos);
  }
}

TEST_CASE("capi: structs never become smaller than in their first version", "[capi]") {
  CHECK(sizeof(col_store_spec) >= kFirstSize<col_store_spec>);
  CHECK(sizeof(col_context_spec) >= kFirstSize<col_context_spec>);
  CHECK(sizeof(col_group_spec) >= kFirstSize<col_group_spec>);
  CHECK(sizeof(col_op_spec) >= kFirstSize<col_op_spec>);
  CHECK(sizeof(col_options) >= kFirstSize<col_options>);
  CHECK(sizeof(col_call) >= kFirstSize<col_call>);
}

}  // namespace col::capi
