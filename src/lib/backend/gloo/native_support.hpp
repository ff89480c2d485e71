// Helpers for the calls of Gloo's collectives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>

#include <col/types.hpp>

#include "backend/gloo/connect.hpp"

namespace col::gloo_backend {

inline constexpr std::string_view kRing = "gloo_ring";
inline constexpr std::string_view kBcube = "gloo_bcube";

using Buffer = std::unique_ptr<::gloo::transport::UnboundBuffer>;

// Gloo has one type for inputs and outputs. It only reads the inputs.
inline Buffer buffer_of(const Mesh& mesh, const void* data, std::size_t bytes) {
  return mesh.transport().createUnboundBuffer(const_cast<void*>(data), bytes);
}

// Gloo's options take the element type as a template parameter, but use only its size.
struct Element16 {
  std::byte bytes[16];
};
constexpr bool has_element_of(std::size_t size) noexcept {
  return size == 1 || size == 2 || size == 4 || size == 8 || size == 16;
}
// Requires: has_element_of(size_of(dtype)).
template <class Body>
void with_element_of(DType dtype, Body body) {
  switch (size_of(dtype)) {
    case 1:
      return body(std::uint8_t{});
    case 2:
      return body(std::uint16_t{});
    case 4:
      return body(std::uint32_t{});
    case 8:
      return body(std::uint64_t{});
    default:
      return body(Element16{});
  }
}

inline std::byte* bytes_at(void* data, std::size_t offset) {
  return static_cast<std::byte*>(data) + offset;
}
inline const std::byte* bytes_at(const void* data, std::size_t offset) {
  return static_cast<const std::byte*>(data) + offset;
}

inline void copy(void* to, const void* from, std::size_t bytes) {
  if (bytes > 0 && to != from) std::memcpy(to, from, bytes);
}

}  // namespace col::gloo_backend
