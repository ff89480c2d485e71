// Pages that must not be touched.
#pragma once

#include <atomic>
#include <cstddef>

namespace col::colcheck {

// `size` bytes of memory between two pages that no code may touch. An access to these pages is allowed to go on (a
// handler of SIGSEGV opens the page), but it is recorded. Other faults end the process as usual.
//
// At most kMostGuarded exist at a time. Accesses are safe from any thread.
class Guarded {
 public:
  static constexpr std::size_t kMostGuarded = 4096;

  // Throws std::system_error, std::bad_alloc.
  explicit Guarded(std::size_t size);
  ~Guarded();
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;

  std::byte* begin() const noexcept;  // of the memory, whose size is a whole number of pages
  std::byte* end() const noexcept;
  bool touched_before() const noexcept;
  bool touched_after() const noexcept;

 private:
  std::size_t slot_;
};

}  // namespace col::colcheck
