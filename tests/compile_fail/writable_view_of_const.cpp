// A writable view of constant elements.
#include <vector>

#include <col/types.hpp>

int main() {
  const std::vector<float> constant(8);
  const col::TensorView view = constant;  // expected-error
  return static_cast<int>(view.count);
}
