#include "core/fork_guard.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <new>

namespace col::core {
namespace {

using Word = std::atomic<std::uint64_t>;

Word* make_word() noexcept {
  constexpr std::size_t kPage = 4096;
  void* const page = ::mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return nullptr;
  if (::madvise(page, kPage, MADV_WIPEONFORK) == 0) return new (page) Word(0);
  ::munmap(page, kPage);
  return nullptr;
}

// Never unmapped: objects may live until the process ends.
Word* the_word() noexcept {
  static Word* const kWord = make_word();
  return kWord;
}

// The number of this process. The first object that is made in it gives it one: a forked child begins with 0.
std::uint64_t number_of_process(Word& word) noexcept {
  // A child has its parent's value, so that its number is a new one among all that its objects can remember.
  static std::atomic<std::uint64_t> last{0};
  std::uint64_t number = word.load(std::memory_order_relaxed);
  if (number != 0) return number;
  const std::uint64_t next = last.fetch_add(1, std::memory_order_relaxed) + 1;
  // relaxed: the number stands for itself.
  return word.compare_exchange_strong(number, next, std::memory_order_relaxed) ? next : number;
}

}  // namespace

ForkGuard::ForkGuard() noexcept
    : word_(the_word()), process_(word_ != nullptr ? number_of_process(*word_) : 0), pid_(::getpid()) {}

bool ForkGuard::is_other_process() const noexcept {
  return ::getpid() != pid_;
}

}  // namespace col::core
