// Memory that the ranks of one node share: collectives on it copy nothing that they need not.
//
// A collective on private memory copies what others need, through a staging area or by the kernel. Where all buffers of
// a call lie in memory from alloc(), ranks read the inputs of others where they are and write results where they
// belong: an in-place allreduce then reads and writes each byte once. The results are the same bits either way, and
// such memory may be used wherever other memory may.
//
// It pays for large vectors that live long, as a trainer's gradients do. Wherever the ranks cannot share memory (on
// several hosts, over another backend than shm, in a world of one) alloc() gives ordinary memory, which works as well
// and no faster, and is taken from the machine as it is touched; with COL_LOG=info it says so once per group.
//
// In a group of backend nccl it is memory of the rank's GPU, allocated by NCCL and, from NCCL 2.27 on, registered with
// it as a window: collectives whose buffers lie there copy less. Its views name the device: Group::device().
#pragma once

#include <cstddef>
#include <limits>
#include <new>
#include <utility>

#include <col/export.hpp>
#include <col/group.hpp>

namespace col {

// Allocates `bytes` on every rank of the group: zeroed, aligned to at least 64 bytes; shared memory is taken from the
// machine at once. Zero bytes give a pointer too. It is this rank's own memory; nothing tells that others can reach it.
//
// Collective and blocking, with the deadline of Options::timeout, counted among the group's calls: every rank calls it
// with the same size. Throws resource when there is no room on one of the ranks; then no rank has got anything, and the
// group stays usable. Throws mismatch when the sizes differ, and names the odd one. Else as every collective.
// Not to be called while the group is in use by another thread.
[[nodiscard]] COL_EXPORT void* alloc(std::size_t bytes, Group group, const Options& options = {});
// The same on the group that options.group names, in the current context.
[[nodiscard]] COL_EXPORT void* alloc(std::size_t bytes, const Options& options = {});

// Frees what alloc() has given to this process. Not collective, does not block: each rank frees its own memory, when it
// likes, also after the group is gone. Null is ignored.
//
// Throws invalid_argument, and frees nothing, when `memory` is no pointer that alloc() gave and that has not been
// freed; when its group is in use by another thread; and when an operation uses it that has not ended, in its group or,
// while that lives, in another of the same context that no thread is in. Thread safe.
COL_EXPORT void free(void* memory);

namespace detail {
// As free(), for destructors: what cannot be freed is kept, and a warning logged.
COL_EXPORT void free_or_keep(void* memory) noexcept;
}  // namespace detail

// For containers:  std::vector<float, col::Allocator<float>> gradients(n, col::Allocator<float>(world));
//
// Every allocation is collective: all ranks must give such containers their sizes in the same order, and let none of
// them grow by itself. An element count that does not fit is std::bad_array_new_length; else throws as alloc().
template <class T>
class Allocator {
 public:
  using value_type = T;

  explicit Allocator(Group group) : group_(std::move(group)) {}  // of a group that moves host memory
  template <class U>
  Allocator(const Allocator<U>& other) : group_(other.group()) {}  // as the requirements on allocators want it

  T* allocate(std::size_t count) {
    static_assert(alignof(T) <= 64);
    if (count > std::numeric_limits<std::size_t>::max() / sizeof(T)) throw std::bad_array_new_length();
    if (group_.device().type != Device::Type::cpu)
      throw Error(ErrorCode::unavailable,
                  "a container lives in host memory, and this group's is on a GPU; call col::alloc() for that",
                  group_.name(), group_.rank());
    return static_cast<T*>(alloc(count * sizeof(T), group_));
  }
  void deallocate(T* memory, std::size_t) noexcept { detail::free_or_keep(memory); }

  const Group& group() const noexcept { return group_; }

 private:
  Group group_;
};

// Any of them can free what another has allocated.
template <class T, class U>
bool operator==(const Allocator<T>&, const Allocator<U>&) noexcept {
  return true;
}

}  // namespace col
