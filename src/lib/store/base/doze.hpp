// A short wait for a key, for callers that look at other things too.
#pragma once

#include <string_view>

#include <col/job.hpp>
#include <col/store.hpp>

namespace col::store {

// Sleeps until `key` is set, or for one slice of `wait`. Throws what the store throws, except a timeout. One that
// sleeps until it is told waits for that key.
void doze(Store& store, std::string_view key, WaitContext& wait);

}  // namespace col::store
