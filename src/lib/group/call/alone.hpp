// The collectives in a world of one rank, which needs no backend.
#pragma once

#include <col/backend.hpp>

namespace col::group {

// Requires: `request` was checked against a group of one rank.
void run_alone(const Request& request);

}  // namespace col::group
