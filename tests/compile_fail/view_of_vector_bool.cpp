// std::vector<bool> packs its elements into bits: there is no array to point to.
#include <vector>

#include <col/types.hpp>

int main() {
  const std::vector<bool> flags(8);
  const col::ConstTensorView view = flags;  // expected-error
  return static_cast<int>(view.count);
}
