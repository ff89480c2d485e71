// Memory that the ranks of one node share. Collectives on such memory avoid copies.
//
// A collective on private memory copies the data that other ranks need, through a staging area or by the kernel. If all
// buffers of a call are in memory from alloc(), each rank reads the inputs of the others in place and writes results
// directly to where they belong. An in-place allreduce then reads and writes each byte once. The results have the same
// bits either way. Such memory may be used wherever other memory may be used.
//
// It pays for large vectors that live long, such as a trainer's gradients. Ranks cannot always share memory: not on
// several hosts, not over a backend other than shm, and not in a world of one. alloc() then returns ordinary memory. It
// works the same, but is no faster, and the machine provides it only when it is touched. With COL_LOG=info, a log line
// says so once for each group.
//
// In a group of backend nccl, alloc() returns memory of the rank's GPU, allocated by NCCL. From NCCL 2.27 on, it is
// registered with NCCL (as a window), which saves NCCL copies. Each rank may pass any part of it; parts need not be at
// equal offsets. Views of it name the device: Group::device().
#pragma once

#include <cstddef>
#include <limits>
#include <memory>
#include <new>
#include <utility>

#include <col/error.hpp>
#include <col/export.hpp>
#include <col/group.hpp>

namespace col {

// Allocates `bytes` on every rank of the group, zeroed and aligned to at least 64 bytes. Shared memory is taken from
// the machine at once. Zero bytes give a pointer too. The memory is this rank's own: only calls of col let other ranks
// read or write it.
//
// Collective and blocking, with the deadline of Options::timeout. It counts among the group's calls, and every rank
// calls it with the same size. Throws resource if one of the ranks has no room: then no rank gets memory, and the group
// stays usable. Throws mismatch if the sizes differ, and names the rank that differs. Other errors as for every
// collective. Do not call it while another thread uses the group.
[[nodiscard]] COL_EXPORT void* alloc(std::size_t bytes, Group group, const Options& options = {});
// The same for the group that options.group names, in the current context.
[[nodiscard]] COL_EXPORT void* alloc(std::size_t bytes, const Options& options = {});

// Frees memory that alloc() gave to this process. Not collective. It does not block; for memory of a busy GPU it takes
// two seconds at most. Each rank frees its own memory at any time, also after the end of the group. Ignores null.
//
// Throws invalid_argument, and frees nothing, in these cases:
// - `memory` is not a pointer from alloc(), or was freed before
// - another thread is using its group
// - an operation that has not ended uses the memory. free() finds such an operation in the memory's group. While that
//   group lives, it also finds one in another group of the same context, if no thread is in a call of that group.
//
// Thread safe.
COL_EXPORT void free(void* memory);

// Memory of a GPU that another library has allocated, PyTorch for example, made known to NCCL. Where NCCL can (over
// NVLink with NVLS, over InfiniBand), it then moves the data without a copy through memory of its own. NCCL decides for
// which buffers that helps, and how they must be allocated: see "User Buffer Registration" in its guide. Results are
// the same either way.
//
//   col::RegisteredMemory segment(pointer, bytes, world);
//
// For groups of backend nccl. In others, it throws unavailable: memory that ranks share comes from alloc() there.
//
// Not collective, but NCCL has a rule for it: if one rank passes registered memory to a call, all ranks must do so, for
// input and output. So register the buffers of a call on all ranks. Offsets need not be equal, because col does not ask
// for NCCL's symmetric kernels.
//
// The memory stays the owner's: free it after release() or after the end of the group. One thread at a time may use an
// object.
class COL_EXPORT RegisteredMemory {
 public:
  RegisteredMemory() = default;  // nothing
  // Throws invalid_argument (not all of the memory is on this rank's GPU; zero bytes) and unavailable: the group stays
  // usable. Other errors as for every call. The memory may have any alignment; NCCL rounds to pages.
  RegisteredMemory(void* memory, std::size_t bytes, const Group& group);
  // As release(). If that fails, the memory stays registered until the end of the group, and a warning is logged.
  ~RegisteredMemory();
  RegisteredMemory(RegisteredMemory&& other) noexcept = default;
  RegisteredMemory& operator=(RegisteredMemory&& other) noexcept;

  explicit operator bool() const noexcept { return registration_ != nullptr; }
  // NCCL forgets the memory. Throws invalid_argument, and changes nothing, if an operation that has not ended uses it,
  // or if another thread uses the group. Other errors as for every call, because messages that wait for NCCL are handed
  // to it first. Does nothing the second time.
  void release();

 private:
  std::shared_ptr<void> registration_;  // the handle from the backend; nobody else has it
  std::weak_ptr<Group::State> state_;
  void* memory_ = nullptr;
  std::size_t bytes_ = 0;
};

namespace detail {
// As free(), for destructors: memory that cannot be freed is kept, and a warning is logged.
COL_EXPORT void free_or_keep(void* memory) noexcept;
// For bindings that copy a result to where the program wants it: throws invalid_argument if calls must not write there.
COL_EXPORT void check_writable(const void* memory, std::size_t bytes, const char* what);
}  // namespace detail

// For containers:  std::vector<float, col::Allocator<float>> gradients(n, col::Allocator<float>(world));
//
// Every allocation is collective. All ranks must set the sizes of such containers in the same order, and no container
// may grow by itself on one rank only. An element count that does not fit throws std::bad_array_new_length. Other
// errors as for alloc().
template <class T>
class Allocator {
 public:
  using value_type = T;

  explicit Allocator(Group group) : group_(std::move(group)) {}  // the group must move host memory
  template <class U>
  Allocator(const Allocator<U>& other) : group_(other.group()) {}  // required of allocators

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

// Any allocator can free what another one has allocated.
template <class T, class U>
bool operator==(const Allocator<T>&, const Allocator<U>&) noexcept {
  return true;
}

}  // namespace col
