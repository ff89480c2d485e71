#include "colcheck/selftest/arithmetic.hpp"

#include <cstring>

namespace col::colcheck {
namespace {

template <class T>
T load(const void* data, std::size_t index) {
  T value;
  std::memcpy(&value, static_cast<const std::byte*>(data) + index * sizeof(T), sizeof(T));
  return value;
}

template <class T>
void store(Bytes& data, std::size_t index, T value) {
  std::memcpy(data.data() + index * sizeof(T), &value, sizeof(T));
}

}  // namespace

Bytes Arithmetic::contribution(ConstTensorView in) const {
  Bytes bytes(in.count * size_of(working_type()));
  with_element(dtype_, [&](auto zero) {
    using T = decltype(zero);
    for (std::size_t i = 0; i < in.count; ++i) store(bytes, i, steps_.contribution(op_, load<T>(in.data, i)));
  });
  return bytes;
}

void Arithmetic::combine(Bytes& left, const Bytes& right, std::size_t count) const {
  with_element(dtype_, [&](auto zero) {
    using P = Partial<decltype(zero)>;
    for (std::size_t i = 0; i < count; ++i)
      store(left, i, steps_.combined<decltype(zero)>(op_, load<P>(left.data(), i), load<P>(right.data(), i)));
  });
}

Bytes Arithmetic::result(const Bytes& folded) const {
  Bytes bytes(folded.size() / size_of(working_type()) * size_of(dtype_));
  with_element(dtype_, [&](auto zero) {
    using T = decltype(zero);
    for (std::size_t i = 0; i * sizeof(T) < bytes.size(); ++i) {
      const auto total = load<Partial<T>>(folded.data(), i);
      store(bytes, i, static_cast<T>(steps_.averaged<T>(op_, total, ranks_)));
    }
  });
  return bytes;
}

}  // namespace col::colcheck
