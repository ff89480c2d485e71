// The watcher, the second process of a job, and how it tells the first one how the job ended.
#pragma once

#include "launch/job/job_result.hpp"
#include "launch/supervise/node_job.hpp"

namespace col::launch {

// Memory that both processes see, made before the watcher exists. The watcher writes once, at its end. The front reads
// after the watcher is gone. A watcher that was killed leaves `complete` unset, and never half a report.
class SharedReport {
 public:
  SharedReport();  // throws LaunchError (125) if there is no memory
  ~SharedReport();
  SharedReport(const SharedReport&) = delete;
  SharedReport& operator=(const SharedReport&) = delete;

  void publish(const JobResult& result) noexcept;
  // False if nothing was published.
  bool read(JobResult& result) const;

 private:
  struct Header;
  Header* header_;
};

struct WatcherParts {
  JobParts job;
  SharedReport& report;
};

// The whole life of the watcher process. It runs the job, and cleans up after it, whatever happens to the first
// process. front.cpp has a picture.
[[noreturn]] void watch_job(const WatcherParts& parts);

}  // namespace col::launch
