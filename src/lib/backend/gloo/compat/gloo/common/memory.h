// Stands in for a header that the distributions' libgloo-dev leaves out although other installed headers include it
// (gloo/transport/tcp/unbound_buffer.h, context.h, pair.h). Found only when the real one is not: see meson.build.
//
// The names, and the layout of the three classes, are those of libgloo.so: one standard smart pointer each.
//
//   ShareableNonOwningPtr  inside an object: hands out weak references to it, and its destructor waits for their users
//   WeakNonOwningPtr       such a reference; does not keep the object
//   NonOwningPtr           the object, kept from being destroyed for the (short) time this exists; null when it is gone
#pragma once

#include <memory>
#include <thread>

namespace gloo {

template <class T>
class NonOwningPtr;
template <class T>
class WeakNonOwningPtr;

template <class T>
class ShareableNonOwningPtr final {
 public:
  explicit ShareableNonOwningPtr(T* object) : ptr_(object, [](T*) {}) {}
  ShareableNonOwningPtr(const ShareableNonOwningPtr&) = delete;
  ShareableNonOwningPtr& operator=(const ShareableNonOwningPtr&) = delete;

  ~ShareableNonOwningPtr() {
    const std::weak_ptr<T> users = ptr_;
    ptr_ = nullptr;
    while (users.use_count() != 0) std::this_thread::yield();
  }

 protected:
  std::shared_ptr<T> ptr_;
  friend class WeakNonOwningPtr<T>;
};

template <class T>
class WeakNonOwningPtr final {
 public:
  WeakNonOwningPtr() = default;
  explicit WeakNonOwningPtr(const ShareableNonOwningPtr<T>& object) : ptr_(object.ptr_) {}

  // Whether it was ever set; the object may be gone.
  explicit operator bool() const noexcept {
    const std::weak_ptr<T> never_set;
    return never_set.owner_before(ptr_) || ptr_.owner_before(never_set);
  }

 protected:
  std::weak_ptr<T> ptr_;
  friend class NonOwningPtr<T>;
};

template <class T>
class NonOwningPtr final {
 public:
  NonOwningPtr() = default;
  explicit NonOwningPtr(const WeakNonOwningPtr<T>& reference) : ptr_(reference.ptr_.lock()) {}

  T* operator->() const noexcept { return ptr_.get(); }
  explicit operator bool() const noexcept { return ptr_ != nullptr; }

 private:
  std::shared_ptr<T> ptr_;
};

}  // namespace gloo
