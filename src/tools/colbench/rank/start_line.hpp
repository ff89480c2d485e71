// Where the ranks of a run are: which of them share a host, and which reach each other without a network.
#pragma once

#include <sched.h>

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <col/group.hpp>

#include "common/unique_fd.hpp"

namespace col::colbench {

// A rank says this of itself. Trivially copyable: gathered as it is. Empty texts are unknown.
struct Whereabouts {
  std::array<char, 64> boot = {};  // another one with every boot of every machine
  std::array<char, 64> network_namespace = {}, pid_namespace = {};
  std::array<char, 96> gpu = {};  // the GPU that it works with; empty when it has not been told to
  cpu_set_t cpus = {};            // that it may use; none when they are more than fit
  int cpu_count = 1;
};

// `gpu`: the number of the GPU that this rank works with; -1: none.
Whereabouts own_whereabouts(int gpu = -1);
// "ranks 0, 2: NVIDIA H200 0000:1b:00.0; rank 1: …"; empty when no rank has one.
std::string gpus_of(std::span<const Whereabouts> ranks);

bool share_host(const Whereabouts& a, const Whereabouts& b);
// True if process numbers have the same meaning for both.
bool share_processes(const Whereabouts& a, const Whereabouts& b);

// A number for each rank, from 0 in the order of the ranks: equal for those that share a host and its network. Where
// that is unknown they do.
std::vector<int> nodes_of(std::span<const Whereabouts> ranks);

// Cores that those of the ranks that share a host with `one` may use together; none that are known: an empty set.
cpu_set_t cores_beside(std::span<const Whereabouts> ranks, const Whereabouts& one);

// Cores that the ranks together may use. Launchers bind ranks to cores of their own: what counts on a host is what all
// of its ranks together may use.
int cpus_of(std::span<const Whereabouts> ranks);

// Where the ranks of a run meet before every timed operation.
//
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
