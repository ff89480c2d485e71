// What a fuzz target and its driver know of each other.
//
// The driver is libFuzzer, or mutate_main.cpp where the compiler has none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

// Tries one input; ends the process when something is wrong with what the library does with it.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace col::fuzz {

// Says what is wrong and ends the process.
[[noreturn]] void fail(std::string_view what);

// While it lives, memory allocated with operator new is counted, and more than `most` bytes in all are a failure.
class AllocationLimit {
 public:
  explicit AllocationLimit(std::size_t most) noexcept;
  ~AllocationLimit();
  AllocationLimit(const AllocationLimit&) = delete;
  AllocationLimit& operator=(const AllocationLimit&) = delete;
};

// What a reader may allocate for a text of that size.
constexpr std::size_t bytes_for_text(std::size_t size) noexcept {
  return (std::size_t{1} << 20) + 2000 * size;
}

}  // namespace col::fuzz
