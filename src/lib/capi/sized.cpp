#include "capi/sized.hpp"

#include <algorithm>
#include <cstring>

namespace col::capi {
namespace {

// No version will reach this. A size above it was never set, and there is no memory to look at.
constexpr std::size_t kMostBytes = 4096;

}  // namespace

void copy_known_part(void* known, const void* given, const SizedLayout& layout) {
  std::size_t size = 0;
  std::memcpy(&size, given, sizeof size);  // `size` is the first member of all
  if (size < layout.first_size || size > kMostBytes || size % layout.alignment != 0)
    refuse(
        "{}: no version of this struct has a size of {} bytes (here it has {}); set its first member with sizeof, and "
        "all others to zero before you use it",
        layout.name, size, layout.size);
  std::memcpy(known, given, std::min(size, layout.size));
  const auto* const bytes = static_cast<const unsigned char*>(given);
  for (std::size_t i = layout.size; i < size; ++i) {
    if (bytes[i] != 0)
      refuse(
          "{}: byte {} is set, but this version of col ({}) knows {} bytes of the struct; use a newer libcol, or leave "
          "what it does not know zero",
          layout.name, i, col_version(), layout.size);
  }
}

}  // namespace col::capi
