// Structs that begin with their size: the caller's may be of an older or a newer version than the library's.
#pragma once

#include <cstddef>
#include <string_view>

#include "capi/guard.hpp"

namespace col::capi {

// What is known of a struct: its name, its size here, and its size in the first version.
struct SizedLayout {
  std::string_view name;
  std::size_t size, alignment, first_size;
};

// Copies to `known`, which is zeroed, the part of `given` that the layout has. Throws invalid_argument if the size of
// `given` cannot be one of this struct, or if it has something else than zeros beyond the layout.
void copy_known_part(void* known, const void* given, const SizedLayout& layout);

// The sizes in the first version. They never change: programs that were compiled with them still run.
template <class Struct>
inline constexpr std::size_t kFirstSize = 0;
template <>
inline constexpr std::size_t kFirstSize<col_store_spec> = 48;
template <>
inline constexpr std::size_t kFirstSize<col_context_spec> = 72;
template <>
inline constexpr std::size_t kFirstSize<col_group_spec> = 48;
template <>
inline constexpr std::size_t kFirstSize<col_renewal> = 48;
template <>
inline constexpr std::size_t kFirstSize<col_op_spec> = 48;
template <>
inline constexpr std::size_t kFirstSize<col_options> = 72;
template <>
inline constexpr std::size_t kFirstSize<col_call> = 112;

// The caller's struct as the library knows it. Members that the caller's version does not have are zero.
template <class Struct>
Struct known_part(const Struct* given, std::string_view name, std::size_t first_size = kFirstSize<Struct>) {
  Struct known{};
  copy_known_part(&known, &required(given, name), {name, sizeof(Struct), alignof(Struct), first_size});
  return known;
}

// The same for a struct that may be left out: NULL means zero in all members.
template <class Struct>
Struct known_part_or_zeros(const Struct* given, std::string_view name) {
  return given == nullptr ? Struct{} : known_part(given, name);
}

// `reserved` of a struct, which a later version may give a meaning.
inline void check_reserved(std::int64_t reserved, std::string_view name) {
  if (reserved != 0)
    refuse("{}: reserved is {}, but must be 0; set members that you do not use to zero", name, reserved);
}

}  // namespace col::capi
