// The control: what the other sources of this folder do wrong, done right. It must compile.
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <col/types.hpp>

std::size_t count(col::TensorView view) {
  return view.count;
}
std::size_t count_const(col::ConstTensorView view) {
  return view.count;
}

int main() {
  std::vector<std::int32_t> integers(3);
  const std::vector<float> constant(2);
  const std::size_t n = count(integers) + count(std::span(integers)) + count_const(constant) +
                        count_const(std::vector<double>(4));  // a temporary lives until the call ends
  return n == 12 ? 0 : 1;
}
