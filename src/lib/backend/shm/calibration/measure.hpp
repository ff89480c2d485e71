// Measures what this machine takes, with one more thread beside the calling one.
//
// The two exchange data as two ranks do, through slots and by the kernel's copy, on two processors that are near each
// other. The thread may run on any processor that the process is allowed by its control group, also where the ranks are
// bound to one each: that of another rank, which waits meanwhile. The best of a few tries counts, so that what else
// runs on the machine hardly shows.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include <col/types.hpp>

#include "backend/shm/segment/tuning.hpp"
#include "core/duration.hpp"

namespace col::shm_backend {

// What a job that starts beside others may lose: values that are nowhere bad serve it well enough. Where a second
// processor is free, all takes 0.7 to 4 ms, and serves the jobs of the next days.
inline constexpr Duration kMostMeasuring = std::chrono::milliseconds(10), kPatience = std::chrono::milliseconds(2);

// Nothing if there is no second processor, if the other thread was not heard of for `patience`, or if `most` did not
// suffice for all. Throws nothing but bad_alloc.
std::optional<Costs> measure_costs(Duration most, Duration patience);

// Costs::line alone, which shows the state that the machine is in.
std::optional<std::uint64_t> measure_line(Duration most);

}  // namespace col::shm_backend
