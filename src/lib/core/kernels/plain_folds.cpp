#include "core/kernels/kernel_table.hpp"

#include <cstring>

namespace col::core {
namespace {

template <class T>
T load(const std::byte* data, std::size_t index) {
  T value;
  std::memcpy(&value, data + index * sizeof(T), sizeof(T));
  return value;
}

template <class T>
void store(std::byte* data, std::size_t index, const T& value) {
  std::memcpy(data + index * sizeof(T), &value, sizeof(T));
}

template <class T, class Combine>
void fold_plainly(const FoldCall& call, Combine combine) {
  for (std::size_t i = 0; i < call.count; ++i) {
    const std::size_t from = call.input_begin + i;
    T value = load<T>(call.inputs[0], from);
    for (std::size_t k = 1; k < call.input_count; ++k) value = combine(value, load<T>(call.inputs[k], from));
    store(call.first.data, i, value);
    if (call.second.data != nullptr) store(call.second.data, i, value);
  }
}

// Memory of a bool may hold any byte: the result is 0 or 1 whatever comes in. One input alone is copied as it is.
template <class Combine>
void fold_logically(const FoldCall& call, Combine combine) {
  fold_plainly<unsigned char>(call, [&](unsigned char left, unsigned char right) {
    return static_cast<unsigned char>(combine(left != 0, right != 0) ? 1 : 0);
  });
}

template <class T>
struct Complex {
  T real, imaginary;
};

template <class T>
void fold_product(const FoldCall& call) {
  fold_plainly<Complex<T>>(call, [](const Complex<T>& left, const Complex<T>& right) {
    return Complex<T>{left.real * right.real - left.imaginary * right.imaginary,
                      left.real * right.imaginary + left.imaginary * right.real};
  });
}

}  // namespace

void fold_logical_and(const FoldCall& call) {
  fold_logically(call, [](bool left, bool right) { return left && right; });
}

void fold_logical_or(const FoldCall& call) {
  fold_logically(call, [](bool left, bool right) { return left || right; });
}

void fold_logical_xor(const FoldCall& call) {
  fold_logically(call, [](bool left, bool right) { return left != right; });
}

void fold_complex64_product(const FoldCall& call) {
  fold_product<float>(call);
}

void fold_complex128_product(const FoldCall& call) {
  fold_product<double>(call);
}

}  // namespace col::core
