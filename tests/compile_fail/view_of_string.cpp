// A string is not a tensor, not even to read from.
#include <string>

#include <col/types.hpp>

int main() {
  const std::string text = "hello";
  const col::ConstTensorView view = text;  // expected-error
  return static_cast<int>(view.count);
}
