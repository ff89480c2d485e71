// Taking the pages of shared memory before they are used: a hole that cannot be filled later would end the process with
// SIGBUS.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

namespace col::shm_backend {

// Each returns nothing when it has worked, else why it has not, in words.

// Makes the empty file `fd` of `bytes` bytes, of which the first `reserved` are taken now.
std::optional<std::string> make_file(int fd, std::size_t bytes, std::size_t reserved);
// Takes the pages of a mapping that [begin, begin + bytes) touches, on the side of the machine that the calling thread
// runs on. Requires: can_populate().
std::optional<std::string> populate(std::byte* begin, std::size_t bytes);

// Whether a mapping's pages can be taken with an error where there is no room (Linux 5.14); else they have to be
// reserved in the file.
bool can_populate() noexcept;

}  // namespace col::shm_backend
