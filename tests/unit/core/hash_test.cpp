#include "core/hash.hpp"

#include <cstdint>

#include "support/catch.hpp"

using col::core::Hash;

TEST_CASE("hash: equal on every build, so that ranks of different builds agree", "[hash]") {
  CHECK(Hash().value() == 0xefd01f60ba992926ULL);
  CHECK(Hash().add("default").add(42).value() == 0xd8758f537544cc5aULL);
}

TEST_CASE("hash: where one part ends and the next begins matters", "[hash]") {
  CHECK(Hash().add("ab").add("c").value() != Hash().add("a").add("bc").value());
  CHECK(Hash().add("").value() != Hash().value());
  CHECK(Hash().add(1).add(2).value() != Hash().add(2).add(1).value());
  CHECK(Hash().add(std::int32_t{-1}).value() == Hash().add(std::int64_t{-1}).value());
}
