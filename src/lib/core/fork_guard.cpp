#include "core/fork_guard.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <new>

namespace col::core {
namespace {

constexpr std::size_t kPage = 4096;

}  // namespace

ForkGuard::ForkGuard() noexcept : pid_(::getpid()) {
  void* const page = ::mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return;
  if (::madvise(page, kPage, MADV_WIPEONFORK) != 0) {
    ::munmap(page, kPage);
    return;
  }
  word_ = new (page) std::atomic<int>(1);
}

ForkGuard::~ForkGuard() {
  if (word_ != nullptr) ::munmap(word_, kPage);
}

bool ForkGuard::is_forked_child() const noexcept {
  // relaxed: it is never stored to again, only wiped.
  if (word_ != nullptr) return word_->load(std::memory_order_relaxed) == 0;
  return ::getpid() != pid_;
}

}  // namespace col::core
