// Follows the calls of the ranks of a host through their flight recorders, and finds who came last to each.
//
// A rank that waits in a call writes how long, and one that comes last need not wait. So of the ranks in a call, the
// one that took the shortest time came last, and each other one has waited for it for as much longer as its own call
// took. This needs no clock in a call that does not wait. Of a call in which several did not wait, as in a reduce the
// ranks that only send, it is not known who was last.
//
// A recorder keeps 1,024 operations. If more have come between two looks, those that are still there stand for all.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <col/job.hpp>

#include "core/clock/clock.hpp"
#include "launch/processes/processes.hpp"
#include "launch/report/job_story.hpp"

namespace col::launch {

class CallWatch {
 public:
  using Clock = core::Clock;
  // Looks are at least so far apart, and take little of one processor.
  static constexpr std::chrono::milliseconds kShortestPause{50};
  static constexpr int kPausePerLook = 50;
  // So many samples are kept of a rank, and of all ranks of a host: those of a host travel in one message.
  static constexpr std::size_t kMostSamples = 4096, kMostSamplesHere = std::size_t{1} << 20;

  // `several_hosts`: keeps some calls, too, for compare_hosts().
  explicit CallWatch(int local_ranks, bool several_hosts = false);

  // When the next look is due.
  Clock::time_point due() const { return due_; }
  // Requires: the page has so many ranks.
  void look(const ControlPage& page);
  // By local rank. After the last look: what came with it is then compared, too.
  std::vector<CallTimes> take(const ControlPage& page);

 private:
  struct Part {
    int rank = 0;  // local
    std::uint64_t took_ns = 0;
  };
  struct Call {
    Collective op = {};
    double weight = 1;            // how many calls it stands for
    bool started_before = false;  // an i-form: its rank need not wait for it when it comes to it
    std::vector<Part> parts;      // that have ended
  };
  struct Group {
    std::string name;
    std::uint64_t token = 0;
    int members = 0;  // on this host
    std::map<std::uint64_t, Call> calls;
  };
  struct Site {
    CallSite found;
    double calls = 0, bytes = 0, compared = 0, last = 0;  // whole numbers in the end
  };
  using Sites = std::map<std::pair<std::string, Collective>, Site>;
  struct Rank {
    std::uint64_t noted = 0;
    std::optional<ProcessSample> first, last;
    Clock::time_point first_look, last_look;
    std::uint64_t looks = 0, outside = 0;
    Sites sites;
    std::size_t samples = 0;  // of all sites
    // Calls that came with the last look; their groups are known with the next one.
    std::vector<TimedCall> fresh;
    double weight = 1;  // how many calls each of them stands for
  };

  void collect(const ControlPage& page);
  void learn_groups(const ControlPage& page);
  void sort_in(int local_rank);
  void compare(Group& group);
  void compare(Group& group, std::uint64_t number, const Call& call);
  void keep(const Part& part, const Group& group, std::uint64_t number, Collective op);
  Site& site(int local_rank, const std::string& group, Collective op);

  std::vector<Rank> ranks_;
  bool several_hosts_;
  std::map<std::uint64_t, Group> groups_;  // by token
  Clock::time_point due_;
};

// Adds up what the ranks of a host do and use, from their page and from /proc.
class UseMeter {
 public:
  // Sets RankStory::use. A rank's calls count from its first look on. Requires: the ranks are those of the page, and
  // what is said of them is of this moment.
  void look(const ControlPage& page, std::vector<RankStory>& ranks);
  // Other processes have taken the place of the ranks.
  void forget() { seen_.clear(); }

 private:
  struct Seen {
    std::uint64_t noted = 0;
    double calls = 0, bytes = 0;
  };

  RankUse use_of(const RankRecord& record, const RankStory& rank);

  std::map<int, Seen> seen_;  // by local rank
};

}  // namespace col::launch
