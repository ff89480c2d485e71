// 16-bit integers have no dtype.
#include <cstdint>
#include <vector>

#include <col/types.hpp>

int main() {
  std::vector<std::int16_t> shorts(8);
  const col::TensorView view = shorts;  // expected-error
  return static_cast<int>(view.count);
}
