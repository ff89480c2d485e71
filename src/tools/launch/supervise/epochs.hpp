// The places of this node's processes in a job whose ranks go on in epochs (--spares, --elastic): who is in the group,
// who sleeps until the others take it in, and in whose place another process is started. Decisions only, no system
// calls.
//
// clang-format off
//   a rank    in ── fails ──► lost ── pause, if --elastic and --max-restarts allow it ──► asleep
//             in ── returns 0 ──► done: the job comes to its end, and nobody is started any more
//             in ── leaves the group ── ends ──► left: as the program has planned it
//             in ── the others leave it out, and it says nothing for its time to end ──► killed
//   a spare   asleep ── the others take it ──► in
//             asleep ── ends ──► lost
// clang-format on
//
// With the last rank that is in, the job is over: nobody is left who could take those in that sleep.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/unique_fd.hpp"
#include "core/clock/clock.hpp"
#include "launch/processes/events.hpp"
#include "launch/report/job_story.hpp"

namespace col::launch {

class Places {
 public:
  using Time = core::Clock::time_point;
  // From a loss to the start of another process: none the first time, then this, and twice as long each time.
  static constexpr std::chrono::milliseconds kPause{1'000}, kLongestPause{30'000};

  struct Rules {
    int ranks = 0;
    int spares = 0;
    int min_ranks = 0;     // with fewer, the job ends; 0: places are not started again
    int max_restarts = 0;  // of each place
  };
  explicit Places(const Rules& rules);

  enum class Standing { in, asleep, lost, done, left };
  Standing of(int place) const { return at(place).standing; }
  bool is_in(int place) const { return of(place) == Standing::in; }
  // It is not the first process of its place.
  bool is_again(int place) const { return at(place).restarts > 0; }
  int restarts(int place) const { return at(place).restarts; }

  void on_taken(int place);
  enum class End { well, failed, after_leaving };
  void on_ended(int place, End end, Time now);
  // The others go on without it, and it has until then to notice or to end.
  void on_left_out(int place, Time until) { places_[static_cast<std::size_t>(place)].left_out_until = until; }

  // The places in which a process is to be started now: it sleeps until it is taken.
  std::vector<int> due(Time now);
  // Ranks whose time to leave is over now.
  std::vector<int> late(Time now);
  std::optional<Time> deadline() const;

  int count(Standing standing) const;
  // Places of which a process lives or will be started.
  int left() const;
  bool will_start(int place) const { return at(place).start.has_value(); }
  bool is_over() const { return count(Standing::in) == 0; }
  // Ranks that live, will be started, or have ended well are fewer than the job needs.
  bool are_too_few() const;

 private:
  struct Place {
    Standing standing = Standing::in;
    int restarts = 0;
    std::optional<Time> start = {};  // of another process
    std::optional<Time> left_out_until = {};
  };
  const Place& at(int place) const { return places_[static_cast<std::size_t>(place)]; }

  Rules rules_;
  std::vector<Place> places_;
};

// The epochs of the job's group, which a rank of this node writes into a file of the job's directory (COL_EPOCH_FILE).
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
