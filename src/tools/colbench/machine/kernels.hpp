// What calibration times: the same bytes moved in several ways, on one rank.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>

#include "colbench/rank/workload.hpp"

namespace col::colbench {

enum class Kernel : std::uint8_t { copy, copy_around_cache, read, write, reduce };
inline constexpr int kKernelCount = 5;
std::string_view to_string(Kernel kernel);

// Bytes read plus bytes written by one operation on a working set of `bytes`.
std::size_t traffic_of(Kernel kernel, std::size_t bytes);

// Repeats the kernel often enough to be measurable; operations() says how often.
std::unique_ptr<Workload> make_kernel_workload(Kernel kernel, std::size_t bytes);

}  // namespace col::colbench
