// Takes the pages of shared memory before they are used. A hole that cannot be filled later would end the process with
// SIGBUS.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

namespace col::shm_backend {

// Each returns nothing on success, otherwise the reason of the failure in words.

// Gives the empty file `fd` a size of `bytes` bytes, and takes the first `reserved` of them now.
std::optional<std::string> make_file(int fd, std::size_t bytes, std::size_t reserved);
// Takes the pages of a mapping that [begin, begin + bytes) touches, on the NUMA node of the calling thread. Requires:
// can_populate().
std::optional<std::string> populate(std::byte* begin, std::size_t bytes);

// Whether a mapping's pages can be taken with an error if there is no room (Linux 5.14). Otherwise they must be
// reserved in the file.
bool can_populate() noexcept;

}  // namespace col::shm_backend
