// For calls of NCCL's that may never return.
#pragma once

#include <functional>
#include <future>

#include <col/types.hpp>

namespace col::nccl_backend {

// Runs `body` in a thread of its own, or in this one if there can be no other. Nothing waits for its end but who waits
// for the result: so `body` owns what it needs, and what it owns has gone when it has ended.
std::future<void> run_in_own_thread(std::function<void()> body);
// The same, and waits for its end. False: it goes on after `limit`.
bool ends_within(Duration limit, std::function<void()> body);

}  // namespace col::nccl_backend
