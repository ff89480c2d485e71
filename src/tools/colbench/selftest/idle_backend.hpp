// A backend that returns at once and moves nothing: what colbench must never take for a fast one.
#pragma once

namespace col::colbench {

inline constexpr const char* kIdleBackend = "idle";

// Makes it known under that name, once.
void register_idle_backend();

}  // namespace col::colbench
