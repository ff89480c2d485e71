// Watches the ranks of a group that is being made, while this rank waits for them.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <col/job.hpp>
#include <col/request.hpp>

#include "group/diagnosis/history.hpp"
#include "group/join/join.hpp"

namespace col::group {

// A rank that has ended, before or after it came, ends the wait. A stopped rank may go on: the log names it once, and
// the timeout names it.
class JoinObserver final : public WaitObserver {
 public:
  explicit JoinObserver(const JoinRequest& request) : request_(request), next_(request.context.local_rank) {}

  // Sets the ranks, once they have met.
  void set_peers(std::vector<PeerInfo> peers) { peers_ = std::move(peers); }
  // From now on, one that has ended may have done its part.
  void all_have_come() { all_have_come_ = true; }
  // This rank waits for nobody any more.
  void withdraw();

  bool on_slow(Duration waited) override;
  void on_news(std::uint32_t news) override;
  void on_timeout(Duration budget) override;

  // Throws peer_lost if the process of a rank of this host is gone. It looks at all of them.
  void look_for_deaths() const;

  // The job's rank that this one has waited for, as far as it can tell; -1: none.
  int held_up_by() const { return held_up_by_; }

  // The rank in the group of the job's rank `global_rank`; -1 if it is not a member, or if that is not known yet.
  int group_rank(int global_rank) const;

 private:
  struct Stopped {
    int global_rank;
    std::int64_t pid;
  };

  bool belongs(int global_rank) const;
  bool is_whole_job() const;
  std::string name(int global_rank) const;
  void look_for_end(const RankRecord& record, bool in_job) const;
  void look_for_death(const RankRecord& record) const;
  std::optional<Stopped> stopped(const RankRecord& record) const;
  void say_who_holds_up();
  void tell(int held_up_by);
  void look_for_failure();
  void look_at_records();

  const JoinRequest& request_;
  std::vector<PeerInfo> peers_ = {};  // its own: who asks after a failure has no group any more
  int held_up_by_ = -1;
  int told_ = kNobody;
  bool all_have_come_ = false, is_store_mute_ = false;
  int next_;                          // local rank that is looked at next
  std::set<std::int64_t> warned_of_;  // processes
};

}  // namespace col::group
