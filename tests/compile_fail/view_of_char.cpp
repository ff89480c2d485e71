// char is text; numbers of one byte are std::int8_t, std::uint8_t and std::byte.
#include <vector>

#include <col/types.hpp>

int main() {
  std::vector<char> text(8);
  const col::TensorView view = text;  // expected-error
  return static_cast<int>(view.count);
}
