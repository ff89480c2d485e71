// The kernel's knowledge of the memory in which a buffer lies.
#pragma once

#include <cstddef>
#include <cstdint>

namespace col::core {

// True where a file is behind it, or another process may map it, too: an array of torch's share_memory_(), of
// multiprocessing.shared_memory, of col::alloc(). A look takes a microsecond: for short buffers, it remembers for a
// moment which pages were the program's own. False where the kernel does not tell. Requires: data may be read.
bool may_be_shared(const void* data, std::size_t bytes) noexcept;

enum class Writing : std::uint8_t {
  allowed,
  read_only,  // a fault would end the program
  of_ray,     // Ray's object store: all workers of the host read the same object
};
// Says if a call may write there; the same holds. A mapping that may be written is looked up once a second.
Writing may_write(const void* data, std::size_t bytes) noexcept;

}  // namespace col::core
