// How much memory this process may still take.
#pragma once

#include <cstdint>
#include <optional>

namespace col::colcheck {

// Bytes that can be had without swapping, as the kernel estimates, or less where the process's control group allows
// less. Nothing when the system does not say.
std::optional<std::uint64_t> available_memory();

}  // namespace col::colcheck
