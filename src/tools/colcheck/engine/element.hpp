// From a DType to its C++ type.
#pragma once

#include <cstdint>

#include <col/types.hpp>

namespace col::colcheck {

// Calls body(T{}) for the C++ type of a DType.
template <class Body>
auto with_element(DType dtype, Body body) {
  switch (dtype) {
    case DType::int8:
      return body(std::int8_t{});
    case DType::uint8:
      return body(std::uint8_t{});
    case DType::int32:
      return body(std::int32_t{});
    case DType::uint32:
      return body(std::uint32_t{});
    case DType::int64:
      return body(std::int64_t{});
    case DType::uint64:
      return body(std::uint64_t{});
    case DType::float16:
      return body(float16{});
    case DType::bfloat16:
      return body(bfloat16{});
    case DType::float32:
      return body(float{});
    default:
      return body(double{});
  }
}

}  // namespace col::colcheck
