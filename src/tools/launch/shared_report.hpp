// How the watcher process tells the front process how the job ended.
#pragma once

#include <atomic>
#include <string_view>

#include "launch/job/job_result.hpp"

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

}  // namespace col::launch
