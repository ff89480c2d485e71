// A short wait for a key, for callers that look at other things too.
#pragma once

#include <algorithm>
#include <chrono>
#include <string>

#include <col/error.hpp>
#include <col/job.hpp>
#include <col/store.hpp>

namespace col::group {

// Sleeps until `key` is set, or for one slice of `wait`, so that the caller can look at everything again. Throws what
// the store throws, except a timeout.
inline void doze(Store& scope, const std::string& key, WaitContext& wait) {
  const auto shortest = std::chrono::milliseconds(1);
  WaitContext brief(Deadline::after(std::max<Duration>(wait.slice(), shortest)), wait.page(), wait.record());
  try {
    scope.wait(key, brief);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::timeout) throw;
  }
}

}  // namespace col::group
