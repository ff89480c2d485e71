// fork() for tests whose process has other threads.
#pragma once

#include <sys/mman.h>
#include <sys/types.h>

#include <new>

namespace col::test {

// Forks once the other threads of this process sleep, or after a moment if they go on. A child has copies of the locks
// as they are: glibc sees to its own, but AddressSanitizer of gcc 12 does not see to those of its allocator, and a
// child that got one locked by a thread that it does not have hangs at its first allocation.
pid_t fork_at_rest();

// A T that processes forked from this one share, so that they can tell each other something without a call.
template <class T>
class SharedByForks {
 public:
  SharedByForks() {
    void* const memory = mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    shared_ = new (memory) T;
  }
  ~SharedByForks() { munmap(shared_, sizeof(T)); }
  SharedByForks(const SharedByForks&) = delete;
  SharedByForks& operator=(const SharedByForks&) = delete;
  T* operator->() const { return shared_; }
  T& operator*() const { return *shared_; }

 private:
  T* shared_;
};

}  // namespace col::test
