// The second process of a job. It runs the job, and cleans up after it, whatever happens to the first process.
#pragma once

#include "launch/shared_report.hpp"
#include "launch/supervise.hpp"

namespace col::launch {

struct WatcherParts {
  JobParts job;
  SharedReport& report;
};

// The whole life of the watcher process. front.cpp has a picture.
[[noreturn]] void watch_job(const WatcherParts& parts);

}  // namespace col::launch
