// What is never freed, because the device may still work on it, or because nothing of CUDA survives a fork.
#pragma once

#include <atomic>
#include <memory>
#include <new>
#include <utility>

namespace col::nccl_backend {

// A list that no one reads: who looks for leaks finds in it what was left behind on purpose. Without a lock, which
// might be held in a forked child.
struct LeftBehind {
  const void* what;
  LeftBehind* next;
  static inline std::atomic<LeftBehind*> last{nullptr};
};

template <class T>
void leave_behind(std::unique_ptr<T>& owner) noexcept {
  const void* const what = owner.release();
  if (what == nullptr) return;
  auto* const entry = new (std::nothrow) LeftBehind{what, LeftBehind::last.load(std::memory_order_relaxed)};
  // relaxed: only who looks for leaks reads it, with all threads stopped.
  while (entry != nullptr && !LeftBehind::last.compare_exchange_weak(entry->next, entry, std::memory_order_relaxed)) {
  }
}

// The same for what an object owns. It is freed if there is no memory to keep it.
template <class T>
void leave_content_behind(T& content) noexcept {
  std::unique_ptr<T> owner(new (std::nothrow) T(std::move(content)));
  leave_behind(owner);
}

}  // namespace col::nccl_backend
