#include "core/joined.hpp"

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "support/catch.hpp"

namespace col::core {
namespace {

TEST_CASE("joined: numbers and words, with a separator between them alone", "[core]") {
  CHECK(joined(std::vector<int>{}, ", ").empty());
  CHECK(joined(std::vector{7}, ", ") == "7");
  CHECK(joined(std::array<std::int64_t, 3>{-1, 0, 12}, ",") == "-1,0,12");
  CHECK(joined(std::vector<std::string>{"", "a", ""}, "; ") == "; a; ");
  CHECK(joined(std::array<std::string_view, 2>{"a", "b"}, "', '") == "a', 'b");
}

}  // namespace
}  // namespace col::core
