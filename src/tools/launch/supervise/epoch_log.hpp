// The epochs of the job's group, which a rank of this node writes into a file of the job's directory (COL_EPOCH_FILE).
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "common/unique_fd.hpp"
#include "core/clock/clock.hpp"
#include "launch/processes/events.hpp"
#include "launch/report/job_story.hpp"

namespace col::launch {

class EpochLog {
 public:
  using Time = core::Clock::time_point;

  // Makes the file, and calls `heard` for each epoch, soon after its line was written. Where the system has no inotify
  // to give, that is when somebody calls read().
  EpochLog(Events& events, std::string path, Time job_began, std::function<void(const EpochStory&)> heard);

  void read();
  const std::vector<EpochStory>& epochs() const noexcept { return epochs_; }

 private:
  void on_change();

  const std::string path_;
  const Time job_began_;
  std::function<void(const EpochStory&)> heard_;
  tools::UniqueFd inotify_;
  EventSource changes_;
  std::size_t taken_ = 0;  // bytes of whole lines
  std::vector<EpochStory> epochs_;
};

}  // namespace col::launch
