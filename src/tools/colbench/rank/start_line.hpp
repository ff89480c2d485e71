// Where the ranks of a run meet before every timed operation.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include <col/group.hpp>

#include "colbench/rank/whereabouts.hpp"
#include "common/unique_fd.hpp"

namespace col::colbench {

// Two ways to start together. Window: all ranks have mapped one page of memory. When the last one has arrived, it
// writes a moment a little in the future there, and all ranks start then. Barrier: the ranks share no clock, and each
// counts from the moment at which it leaves a barrier.
class StartLine {
 public:
  // Collective over `control`. It is a window, unless the ranks are on several hosts or `barrier` asks for a barrier.
  StartLine(Group control, std::shared_ptr<ControlPage> page, bool barrier, std::span<const Whereabouts> ranks);
  ~StartLine();
  StartLine(const StartLine&) = delete;
  StartLine& operator=(const StartLine&) = delete;

  bool is_window() const noexcept { return page_ != nullptr; }
  // Why it is a barrier although the ranks are on one host; empty if a barrier was requested. Equal on all ranks.
  const std::string& why_barrier() const noexcept { return why_barrier_; }
  // There are more ranks than cores: they take turns, so they cannot all start at the same time.
  bool is_crowded() const noexcept { return crowded_; }

  // Blocks until all ranks are here and the common start has come, and returns this time. Throws timeout, and what
  // ended the job.
  std::int64_t wait(Duration timeout);
  // This rank will not come any more: the waits of the others end.
  void fail() noexcept;
  // The time of a message from one rank to another through a cache line: half of the round trip between rank 0 and the
  // last one, the best of many, in seconds; 0 if there is no common page. Collective.
  double hand_over(Duration timeout);

 private:
  struct Page;
  struct Offer;
  void map();
  std::string make_page(Offer& offer, tools::UniqueFd& file);
  std::string find_page(const Offer& offer);
  bool map_file(int file) noexcept;
  void unmap() noexcept;
  template <class Ready>
  void wait_until(Duration timeout, Ready ready);

  Group control_;
  std::shared_ptr<ControlPage> job_;
  bool crowded_ = false;
  int rank_ = 0, size_ = 1;
  Page* page_ = nullptr;
  std::string why_barrier_;
  std::uint64_t turn_ = 0, bounced_ = 0;
};

}  // namespace col::colbench
