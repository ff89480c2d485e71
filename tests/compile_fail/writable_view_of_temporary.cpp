// A writable view of a vector that is gone when the result would be read.
#include <vector>

#include <col/types.hpp>

int main() {
  const col::TensorView view = std::vector<float>(8);  // expected-error
  return static_cast<int>(view.count);
}
