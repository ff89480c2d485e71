// The second process of a job: keeps it, and cleans up after it whatever happens to the first.
#pragma once

#include "launch/shared_report.hpp"
#include "launch/supervise.hpp"

namespace col::launch {

struct WatcherParts {
  JobParts job;
  SharedReport& report;
};

// The whole life of the watcher process; the arrangement is drawn in front.cpp.
[[noreturn]] void watch_job(const WatcherParts& parts);

}  // namespace col::launch
