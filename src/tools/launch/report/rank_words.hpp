// Ranks, and how they ended, in words.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "launch/job/job_result.hpp"

namespace col::launch {

// "exited with code 7", "was killed by SIGSEGV".
std::string describe_wait_status(int wait_status);

// The same, and "was killed by SIGKILL: out of memory (peak RSS 12.3 GiB)".
std::string describe_status(const RankStatus& status);

// "rank 2", "ranks 0-2, 5".
std::string name_ranks(const std::vector<int>& ranks);

// "12.3 GiB", "812 MiB", "96 KiB".
std::string describe_bytes(std::uint64_t bytes);

// Whether it failed, and neither the launcher nor another rank's failure is the reason.
bool failed_on_its_own(const RankStatus& status);

}  // namespace col::launch
