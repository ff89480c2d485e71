// A call in words and as a number: equal on all ranks that make the same call.
#pragma once

#include <cstdint>
#include <string>

#include <col/backend.hpp>

namespace col::group {

// "allreduce of 10 float32, sum". What legitimately differs between ranks (the counts of an alltoallv) is left out.
std::string describe(const Request& request);

// Hash of (group, sequence, operation, dtype, reduce op, root, count).
std::uint64_t fingerprint(std::uint64_t group_token, std::uint64_t sequence, const Request& request);

}  // namespace col::group
