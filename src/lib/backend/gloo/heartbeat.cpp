#include "backend/gloo/heartbeat.hpp"

#include <string>
#include <utility>

#include <fmt/format.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "backend/gloo/transport.hpp"
#include "core/joined.hpp"

namespace col::gloo_backend {
namespace {

using namespace std::chrono_literals;

// In so many looks of a stall something must be heard: when a link that was cut for a moment is back, one side may send
// again sooner than the other.
constexpr int kLooksInStall = 4;
// A packet that was lost by chance is sent again once or twice. The third time is 1.4 s after the first.
constexpr int kManyRetransmits = 3;

std::optional<tcp_info> info_of(int socket) noexcept {
  tcp_info info{};
  socklen_t size = sizeof info;
  if (::getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return std::nullopt;
  return info;
}

double seconds(Duration time) {
  return std::chrono::duration<double>(time).count();
}

}  // namespace

// ---- One connection

std::optional<PulseOf::Time> PulseOf::deadline(const HeartbeatSpec& spec, Time now) const {
  if (!heard_at_) return std::nullopt;
  const Time first = *heard_at_ + spec.most_silence();
  return first > now ? first : *heard_at_ + spec.most_silence_of_processes();
}

std::optional<HostFault> PulseOf::look(const HeartbeatSpec& spec, Time now, Duration pause, int socket,
                                       std::uint64_t read, std::uint64_t written) {
  // What was heard after the pause, but before this look, is no part of it.
  if (heard_at_) *heard_at_ = std::min(*heard_at_ + pause, now);
  if (stalled_since_) *stalled_since_ = std::min(*stalled_since_ + pause, now);
  const bool is_heard = std::exchange(read_, read) != read;
  // It came at some time since the last look.
  if (heard_at_ && is_heard) heard_at_ = std::max(*heard_at_, now - spec.interval());
  if (const auto fault = look_at_stall(spec, now, is_heard, socket, written)) return fault;
  return look_at_silence(spec, now, socket);
}

std::optional<HostFault> PulseOf::look_at_silence(const HeartbeatSpec& spec, Time now, int socket) const {
  if (!heard_at_ || now - *heard_at_ < spec.most_silence()) return std::nullopt;
  const auto info = info_of(socket);
  const bool answers = info && std::chrono::milliseconds(info->tcpi_last_ack_recv) <= spec.latest_answer();
  if (!answers) return HostFault::unreachable;
  if (now - *heard_at_ < spec.most_silence_of_processes()) return std::nullopt;
  return HostFault::stopped;
}

std::optional<HostFault> PulseOf::look_at_stall(const HeartbeatSpec& spec, Time now, bool is_heard, int socket,
                                                std::uint64_t written) {
  if (written == settled_) return std::nullopt;  // an idle connection costs nothing
  const auto info = info_of(socket);
  if (!info) return std::nullopt;
  if (info->tcpi_unacked == 0 && info->tcpi_notsent_bytes == 0) settled_ = written;
  const bool moves = std::exchange(acked_, info->tcpi_bytes_acked) != info->tcpi_bytes_acked;
  if (moves || info->tcpi_unacked == 0 || info->tcpi_retransmits == 0) {
    stalled_since_.reset();
    heard_in_stall_ = 0;
    return std::nullopt;
  }
  if (!stalled_since_) stalled_since_ = now;
  heard_in_stall_ += is_heard ? 1 : 0;
  if (info->tcpi_retransmits < kManyRetransmits) return std::nullopt;
  const Duration stall = now - *stalled_since_;
  const bool is_known_to_live = heard_at_ && heard_in_stall_ >= kLooksInStall && stall >= spec.most_stall();
  if (is_known_to_live || (!heard_at_ && stall >= spec.most_stall_unheard())) return HostFault::large_packets_lost;
  return std::nullopt;
}

// ---- All connections of a rank

bool GuardedContext::is_far(int other) const {
  return kin_.host_of(other) != kin_.host_of(rank);
}

void GuardedContext::begin_to_look() {
  if (look_at_hosts_at_) return;
  looked_at_hosts_ = Lobby::Clock::now();
  look_at_hosts_at_ = looked_at_hosts_;
  poller_.set_alarm(0ms);  // do_what_is_due() says when
}

// Where both sides stand for their hosts.
void GuardedContext::say_that_it_lives(Peer& peer) {
  const auto has_gone_here = [this](int other) { return has_gone(other); };
  const auto speaks = [&](int one) { return kin_.speaker_of(kin_.host_of(one), has_gone_here) == one; };
  peer.pulse.speaks = peer.pulse.speaks || (!heartbeat_.is_watched && speaks(rank) && speaks(peer.rank));
  if (peer.pulse.speaks) put(peer, {.kind = Kind::alive});
}

// Says that this rank lives, and looks whether others do.
void GuardedContext::look_at_hosts(Lobby::Clock::time_point now) {
  const Duration passed = now - std::exchange(looked_at_hosts_, now);
  // What was not heard while this process stood still is no silence.
  const Duration pause = passed > heartbeat_.most_silence() / 2 ? passed : Duration::zero();
  look_at_hosts_at_ = now + heartbeat_.interval();
  std::vector<std::pair<int, HostFault>> faults;
  for (Peer& peer : peers_) {
    if (!peer.is_open() || peer.has_left || peer.rank == rank || !is_far(peer.rank)) continue;
    Connection& connection = *peer.connection;
    const auto fault = peer.pulse.look(heartbeat_, now, pause, connection.socket(), connection.bytes_read(),
                                       connection.bytes_written());
    if (fault) faults.emplace_back(peer.rank, *fault);
    // What waits to be written is heard as well.
    if (!connection.has_more_to_write()) say_that_it_lives(peer);
    if (const auto deadline = peer.pulse.deadline(heartbeat_, now); deadline && *deadline > now)
      look_at_hosts_at_ = std::min(*look_at_hosts_at_, *deadline);
  }
  for (const auto& [other, fault] : faults) give_up(other, fault);
}

void GuardedContext::give_up(int other, HostFault fault) {
  if (fault == HostFault::large_packets_lost) {
    Peer& peer = peer_of(other);
    if (peer.failure != nullptr) return;
    // What waits in the socket would keep the peer from hearing that this is the end.
    const linger at_once{.l_onoff = 1, .l_linger = 0};
    ::setsockopt(peer.connection->socket(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    return close(peer, std::make_exception_ptr(host_error(other, fault)));
  }
  lose_host(other, fault, -1);
}

// All ranks of the host of `other` are lost. `from`: the rank that has said so; -1: this rank has found it.
void GuardedContext::lose_host(int other, HostFault fault, int from) {
  const int host = kin_.host_of(other);
  const std::vector<int>& ranks = kin_.ranks_on(host);
  const bool is_known = std::all_of(ranks.begin(), ranks.end(), [this](int lost) { return has_gone(lost); });
  if (is_known || host == kin_.host_of(rank)) return;
  const auto failure = std::make_exception_ptr(host_error(other, fault));
  if (lost_host_ == nullptr) lost_host_ = failure;
  for (const int lost : ranks) {
    if (has_gone(lost)) continue;
    peer_of(lost).is_said_lost = true;  // the news is that of the host
    close(peer_of(lost), failure);
  }
  tell({.bytes = static_cast<std::uint64_t>(fault), .kind = Kind::host_lost, .rank = other}, from);
}

std::exception_ptr GuardedContext::lost_host() {
  const std::lock_guard lock(mutex_);
  return lost_host_;
}

Error GuardedContext::host_error(int other, HostFault fault) const {
  const std::vector<int>& ranks = kin_.ranks_on(kin_.host_of(other));
  const std::string& name = host_names_[static_cast<std::size_t>(other)];
  const std::string host =
      fmt::format("host {} ({} {})", name, ranks.size() == 1 ? "rank" : "ranks", core::joined(ranks, ", "));
  switch (fault) {
    case HostFault::unreachable:
      return Error(
          ErrorCode::peer_lost,
          fmt::format("{} has not been heard of for {:g} s, and its kernel does not answer: it is dead, or the "
                      "link to it is cut; look at that host and at the network between",
                      host, seconds(heartbeat_.most_silence())),
          {}, other);
    case HostFault::stopped:
      return Error(
          ErrorCode::peer_lost,
          fmt::format("{} has not been heard of for {:g} s, though its kernel answers: its processes are stopped "
                      "(SIGSTOP, a suspended job, a debugger in rank {}), or large packets from it are lost "
                      "(MTU, firewall: see what rank {} says); continue them, or set COL_HOST_TIMEOUT to more "
                      "than {:g} s",
                      host, seconds(heartbeat_.most_silence_of_processes()), other, other,
                      seconds(heartbeat_.host_timeout)),
          {}, other);
    case HostFault::large_packets_lost:
      break;
  }
  // A cause of its own, which the ranks that see the connection close are to find at once: so no code of a consequence.
  return Error(
      ErrorCode::timeout,
      fmt::format("small messages from rank {} on host {} reach rank {} on host {}, but large packets are lost: "
                  "an MTU on the way is smaller than that of the interface, or a firewall drops what is large; "
                  "compare `ip link` on both hosts and the switch, and let ICMP 'fragmentation needed' pass",
                  rank, host_names_[static_cast<std::size_t>(rank)], other, name),
      {}, other);
}

}  // namespace col::gloo_backend
