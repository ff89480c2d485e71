// Views of what has no dtype, and writable views of what cannot be written.
#include <string>
#include <vector>

#include <col/types.hpp>

// std::vector<bool> packs its elements into bits: there is no array to point to.
std::size_t view_of_vector_bool() {
  const std::vector<bool> flags(8);
  const col::ConstTensorView view = flags;  // expected-error
  return view.count;
}

// char is text; numbers of one byte are std::int8_t, std::uint8_t and std::byte.
std::size_t view_of_char() {
  std::vector<char> text(8);
  const col::TensorView view = text;  // expected-error
  return view.count;
}

// A string is not a tensor, not even to read from.
std::size_t view_of_string() {
  const std::string text = "hello";
  const col::ConstTensorView view = text;  // expected-error
  return view.count;
}

std::size_t writable_view_of_const() {
  const std::vector<float> constant(8);
  const col::TensorView view = constant;  // expected-error
  return view.count;
}

// The vector is gone when the result would be read.
std::size_t writable_view_of_temporary() {
  const col::TensorView view = std::vector<float>(8);  // expected-error
  return view.count;
}
