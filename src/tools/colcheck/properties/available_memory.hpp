// How much memory this process may still take.
#pragma once

#include <cstdint>
#include <optional>

namespace col::colcheck {

// Bytes that are available without swapping, by the kernel's estimate, or less if the process's control group allows
// less. Nothing if the system does not say.
std::optional<std::uint64_t> available_memory();

}  // namespace col::colcheck
