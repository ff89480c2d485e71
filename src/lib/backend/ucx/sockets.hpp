// The TCP sockets that UCX opens for one worker, as the process sees them. UCX has no setting for what is needed here:
// it probes only connections that it made itself, and none on which data is under way.
#pragma once

#include <chrono>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <col/job.hpp>

namespace col::ucx_backend {

class Sockets {
 public:
  // The addresses at which this process listens for TCP: "10.77.0.1:4711".
  static std::set<std::string> listening();

  // `own`: those of the worker.
  void set_own(std::set<std::string> own) { own_ = std::move(own); }
  const std::set<std::string>& own() const noexcept { return own_; }
  // Where a peer listens.
  void add_peer(std::string_view address) { peers_.emplace(address); }

  // Only who connects from one of these addresses (without a port) is heard from now on. Whoever else is connected is
  // cut off.
  void admit(const std::vector<std::string>& hosts);

  // Ends all connections of the worker.
  void shut() const noexcept;

  // Call it often: it does its work twice a second. Makes the kernel probe connections that are idle, and shuts down
  // those on which the other side's kernel has answered nothing for kSilence: UCX then reports that peer. A process
  // that is stopped or busy does not count: its kernel answers. Returns whether it has done its work.
  bool look();
  // There are new connections: does it with the next look().
  void look_soon() noexcept { next_look_ = {}; }

  static constexpr std::chrono::milliseconds kSilence{3500};

 private:
  bool is_own(int descriptor) const;
  void look_at(int descriptor, Deadline::Clock::time_point now);

  std::set<std::string> own_, peers_;
  std::set<std::string> hosts_;                                // that are admitted; empty: all
  std::map<std::string, Deadline::Clock::time_point> probed_;  // connections, by both addresses: since when
  Deadline::Clock::time_point next_look_{};
};

}  // namespace col::ucx_backend
