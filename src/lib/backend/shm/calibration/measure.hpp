// Measures what this machine takes, with one more thread beside the calling one.
//
// The two exchange data as two ranks do, through slots and by the kernel's copy, on two processors that are near each
// other. The thread may run on any processor that the process is allowed by its control group, also where the ranks are
// bound to one each: that of another rank, which waits meanwhile. The best of a few tries counts, so that what else
// runs on the machine hardly shows.
#pragma once

#include <cstdint>
#include <optional>

#include <col/types.hpp>

#include "backend/shm/segment/tuning.hpp"
#include "core/duration.hpp"

namespace col::shm_backend {

// Nothing if there is no second processor, or if `most` did not suffice. Throws nothing but bad_alloc.
std::optional<Costs> measure_costs(Duration most);

// Costs::line alone, which shows the state that the machine is in.
std::optional<std::uint64_t> measure_line(Duration most);

}  // namespace col::shm_backend
