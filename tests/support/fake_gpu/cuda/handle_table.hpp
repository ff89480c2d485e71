// Gives objects handles that cannot be followed as pointers and are never given twice.
//
// The real driver's handles are pointers: a stale one crashes, or is by chance a new object. Here it is an error.
#pragma once

#include <cstdint>
#include <map>
#include <memory>

namespace fake_gpu {

template <typename T, typename Handle>
class HandleTable {
 public:
  // `kind` is the first part of the handle, so that a handle of one kind is no handle of another.
  explicit HandleTable(uintptr_t kind) : next_((kind << 40) + kStep) {}

  Handle add(std::shared_ptr<T> object) {
    Handle handle = reinterpret_cast<Handle>(next_);
    next_ += kStep;
    objects_.emplace(handle, std::move(object));
    return handle;
  }
  std::shared_ptr<T> find(Handle handle) const {
    auto found = objects_.find(handle);
    return found == objects_.end() ? nullptr : found->second;
  }
  std::shared_ptr<T> take(Handle handle) {
    auto found = objects_.find(handle);
    if (found == objects_.end()) return nullptr;
    auto object = std::move(found->second);
    objects_.erase(found);
    return object;
  }
  template <typename Predicate>
  void remove_if(Predicate predicate) {
    std::erase_if(objects_, [&](const auto& entry) { return predicate(*entry.second); });
  }
  size_t size() const { return objects_.size(); }
  const std::map<Handle, std::shared_ptr<T>>& all() const { return objects_; }

 private:
  static constexpr uintptr_t kStep = 16;
  uintptr_t next_;
  std::map<Handle, std::shared_ptr<T>> objects_;
};

}  // namespace fake_gpu
