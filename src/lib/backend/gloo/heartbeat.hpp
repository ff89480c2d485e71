// How a rank knows that another host lives (docs/decisions/0029-heartbeat.md).
//
// The lowest rank of each host stands for it. Where two such ranks are connected, each says at short intervals that it
// lives; its event thread does, whatever the rank itself computes. Who has been heard in this way is expected to be
// heard again. All ranks look whether what they have sent is acknowledged.
//
//   nothing is heard, and the kernel there acknowledges nothing   the host is dead, or its link is cut
//   nothing is heard, but the kernel acknowledges                 its processes are stopped
//   it is heard, but what was sent is not acknowledged            large packets are lost on the way
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>

#include <col/types.hpp>

#include "core/clock/clock.hpp"

namespace col::gloo_backend {

struct HeartbeatSpec {
  static constexpr Duration kDefault = std::chrono::seconds(5);

  // Within which time a loss is to be known. COL_HOST_TIMEOUT.
  Duration host_timeout = kDefault;
  // Something else watches the hosts, and knows better: colrun's launchers, which may stop all ranks of a host.
  bool is_watched = false;

  // Between two signs of life, and two looks.
  Duration interval() const { return std::min<Duration>(host_timeout / 20, std::chrono::milliseconds(250)); }
  // How long a host may be silent. If its kernel answers, a bit longer: the other side may be about to say that its
  // large packets are lost.
  Duration most_silence() const { return host_timeout * 12 / 20; }
  Duration most_silence_of_processes() const { return host_timeout * 13 / 20; }
  // So long ago may be the last answer of a kernel that lives. TCP asks one that has no room at growing intervals.
  Duration latest_answer() const { return host_timeout * 8 / 20; }
  // How long what was sent may be unacknowledged, if the other side is heard meanwhile. And if it is not known whether
  // it is: so long that a lost host is known to be lost before.
  Duration most_stall() const { return host_timeout * 8 / 20; }
  Duration most_stall_unheard() const { return host_timeout * 3 / 2; }
};

enum class HostFault : std::uint32_t { unreachable = 1, stopped, large_packets_lost };

// What one side of a connection to another host has seen of the other one.
class PulseOf {
 public:
  using Time = core::Clock::time_point;

  bool speaks = false;  // this side says that it lives

  // The other side has said that it lives.
  void hear(Time now) { heard_at_ = now; }
  // Call it once an interval. `read` and `written`: the bytes so far. `pause`: how long this process has stood still
  // since the last call. What is wrong, if anything is.
  std::optional<HostFault> look(const HeartbeatSpec& spec, Time now, Duration pause, int socket, std::uint64_t read,
                                std::uint64_t written);
  // When the silence becomes too long, if the other side speaks.
  std::optional<Time> deadline(const HeartbeatSpec& spec, Time now) const;

 private:
  std::optional<HostFault> look_at_silence(const HeartbeatSpec& spec, Time now, int socket) const;
  std::optional<HostFault> look_at_stall(const HeartbeatSpec& spec, Time now, bool is_heard, int socket,
                                         std::uint64_t written);

  std::optional<Time> heard_at_;  // empty: it has never said that it lives
  std::uint64_t read_ = 0;
  std::uint64_t settled_ = 0;          // of what was written: all of it has arrived
  std::uint64_t acked_ = 0;            // by the kernel's count
  std::optional<Time> stalled_since_;  // something is sent again and again
  int heard_in_stall_ = 0;             // in how many looks
};

}  // namespace col::gloo_backend
