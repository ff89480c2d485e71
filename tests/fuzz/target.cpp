#include "target.hpp"

#include <cstdio>
#include <cstdlib>
#include <new>

namespace {

// One thread: targets start none.
std::size_t allocation_left = 0;
bool allocation_limited = false;

void* allocate(std::size_t size) {
  if (allocation_limited) {
    if (size > allocation_left) {
      allocation_limited = false;
      col::fuzz::fail("more memory is allocated than the text's size explains");
    }
    allocation_left -= size;
  }
  if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc();
}

}  // namespace

void* operator new(std::size_t size) {
  return allocate(size);
}
void* operator new[](std::size_t size) {
  return allocate(size);
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete[](void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::size_t) noexcept {
  std::free(memory);
}

namespace col::fuzz {

void fail(std::string_view what) {
  std::fprintf(stderr, "fuzz: %.*s\n", static_cast<int>(what.size()), what.data());
  std::abort();
}

AllocationLimit::AllocationLimit(std::size_t most) noexcept {
  allocation_left = most;
  allocation_limited = true;
}

AllocationLimit::~AllocationLimit() {
  allocation_limited = false;
}

}  // namespace col::fuzz
