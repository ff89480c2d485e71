#include "core/kernels/to_others.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "core/kernels/reduce.hpp"

namespace col::core {
namespace {

constexpr std::size_t kLineBytes = 64;
// Stays in the first cache.
constexpr std::size_t kOthersBlock = 16384;

// AddressSanitizer and ThreadSanitizer see memcpy() alone.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kIsWatched = true;
#else
constexpr bool kIsWatched = false;
#endif

// Whether `rep movsb`, which writes whole lines, starts quickly.
bool has_fast_strings() noexcept {
#if defined(__x86_64__)
  static const bool kHas = [] {
    unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
    constexpr unsigned kFastShortRepMov = 1U << 4;
    return __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) != 0 && (edx & kFastShortRepMov) != 0;
  }();
  return kHas && !kIsWatched;
#else
  return false;
#endif
}

}  // namespace

// Not by memcpy() alone: whether it writes whole lines differs between versions of the C library, and processors.
void copy_to_others(std::byte* to, const std::byte* from, std::size_t bytes, Stores stores) noexcept {
  if (stores == Stores::streaming && !kIsWatched) return copy(to, from, bytes, stores);
#if defined(__x86_64__)
  if (bytes >= kLeastWhole && has_fast_strings()) {
    // A line of which only the end is written is not written whole.
    const std::size_t head = (0 - reinterpret_cast<std::uintptr_t>(to)) % kLineBytes;
    std::memcpy(to, from, head);
    to += head;
    from += head;
    bytes -= head;
    asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes) : : "memory");
    return;
  }
#endif
  if (bytes != 0) std::memcpy(to, from, bytes);
}

void fold_to_others(const Op& op, DType dtype, bool wide, std::span<const std::byte*> inputs, std::size_t ranks,
                    FoldTarget own, FoldTarget theirs, std::size_t count) {
  const std::size_t size = size_of(dtype), in_size = wide ? size_of(accumulation_type(dtype)) : size;
  if (count * size < kLeastWhole) return fold(op, dtype, wide, inputs, ranks, own, {theirs.data}, count);
  const bool keeps = own.data != nullptr && own.stores == Stores::cached, streams = own.data != nullptr && !keeps;
  alignas(kLineBytes) std::array<std::byte, kOthersBlock> block;
  for (const std::size_t most = kOthersBlock / size; count != 0;) {
    const std::size_t n = std::min(most, count), bytes = n * size;
    const FoldTarget here{block.data()};
    fold(op, dtype, wide, inputs, ranks, streams || keeps ? own : here, streams ? here : FoldTarget{}, n);
    copy_to_others(theirs.data, keeps ? own.data : here.data, bytes, theirs.stores);
    if (own.data != nullptr) own.data += bytes;
    theirs.data += bytes;
    for (const std::byte*& input : inputs) input += n * in_size;
    count -= n;
  }
}

}  // namespace col::core
