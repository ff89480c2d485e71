// The second process of a job: keeps it, and cleans up after it whatever happens to the first.
#pragma once

#include <string>

#include "launch/job_directory.hpp"
#include "launch/job_spec.hpp"
#include "launch/shared_report.hpp"
#include "launch/signals.hpp"

namespace col::launch {

struct WatcherParts {
  const JobSpec& spec;
  const std::string& program;
  const std::string& job_id;
  const JobDirectory& directory;
  SharedReport& report;
  SignalGate& signals;
  int lifeline;
};

// The whole life of the watcher process; the arrangement is drawn in front.cpp.
[[noreturn]] void watch_job(const WatcherParts& parts);

}  // namespace col::launch
