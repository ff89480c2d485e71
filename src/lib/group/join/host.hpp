// The machine that this process runs on, and whether a process of it has ended.
#pragma once

#include <cstdint>
#include <string>

#include "core/clock/scheduler.hpp"

namespace col::group {

using core::Host;

// Reads /proc once. Fields that cannot be read are empty (then no two hosts count as the same).
const Host& this_host();

// Whether the process `pid` of the host with that boot id and pid namespace has certainly ended. False if this process
// cannot know, because it is elsewhere.
bool is_gone(std::int64_t pid, const std::string& boot_id, const std::string& pid_namespace);

}  // namespace col::group
