// Where connections begin: the one port of this rank, those who call there and have not proven who they are, and this
// rank's own calls to others. A stranger is dropped and said once; nothing else changes.
//
// Two ranks may call each other at once. Of two connections, the one that the lower rank has made stays: a rank that is
// calling a higher one tells a call from there that another way is being made.
//
//   caller                        listening rank
//   connect, its rank      →
//   the introduction       ⇄      (net/introduction.hpp)
//                          ←      '+' this connection stays, or '-' another way is being made
//
// The transport's mutex guards it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <map>
#include <optional>
#include <string_view>
#include <unordered_map>

#include "backend/gloo/address.hpp"
#include "backend/gloo/credentials.hpp"
#include "core/clock/clock.hpp"
#include "core/unique_fd.hpp"
#include "net/interfaces.hpp"
#include "net/introduction.hpp"
#include "net/poller.hpp"

namespace col::gloo_backend {

using net::Interface;

// The first of net::choose_interfaces().
inline Interface choose_interface(bool same_host, std::string_view wanted) {
  return net::choose_interfaces("gloo", same_host, wanted).front();
}

// What an event of the rank's poller is about.
enum class Target : std::uint32_t { listener, caller, call, connection };
constexpr std::uint64_t event_id(Target target, std::uint32_t number = 0) noexcept {
  return std::uint64_t{static_cast<std::uint32_t>(target)} << 32 | number;
}
constexpr Target target_of(std::uint64_t id) noexcept {
  return static_cast<Target>(id >> 32);
}
constexpr std::uint32_t number_of(std::uint64_t id) noexcept {
  return static_cast<std::uint32_t>(id);
}

// By errno.
[[noreturn]] void throw_errno(const char* what);

// Who gets the connections.
class LobbyOwner {
 public:
  // Whether a connection to `peer` is still to be made.
  virtual bool wants(int peer) const = 0;
  // Both sides have proven who they are. The socket is watched, for Target::connection and `peer`.
  virtual void connected(int peer, core::UniqueFd socket) = 0;
  // There is no way to `peer`.
  virtual void unreachable(int peer, std::exception_ptr why) = 0;

 protected:
  ~LobbyOwner() = default;
};

class Lobby {
 public:
  using Clock = core::Clock;

  // Listens at `interface`. Throws Error.
  Lobby(LobbyOwner& owner, net::Poller& poller, Credentials& credentials, int size, const Interface& interface);

  // The address of this rank.
  const Address& address() const noexcept { return address_; }
  // Calls a peer, unless it is being called.
  void call(int peer, const Address& address);
  bool is_calling(int peer) const { return calls_.contains(peer); }

  // What events tell: of the listener, of one who calls, of this rank's call to a peer.
  void hear_listener();
  void hear_caller(std::uint32_t number);
  void hear_call(int peer);
  // Does what is due. Returns when it has to be called next, if at all.
  std::optional<Clock::time_point> do_what_is_due(Clock::time_point now);
  // Whether somebody who calls cannot be let in, as this process has no descriptor left.
  bool is_starved() const noexcept { return is_starved_; }
  // Ends all that has begun, and listens no more.
  void close() noexcept;

 private:
  struct Caller {
    core::UniqueFd socket;
    Clock::time_point since = {};
    std::array<char, 4> rank{};  // as it says
    std::size_t rank_bytes = 0;
    std::optional<net::Introduction> introduction = {};  // once it has said its rank
    // A rank says at once which one it is. It may hang up before it has proven that: when it leaves, it gives up a call
    // to a rank that has called it meanwhile.
    bool has_said_rank() const noexcept { return rank_bytes == rank.size(); }
  };
  struct Call {
    Address address;
    core::UniqueFd socket = {};
    std::optional<net::Introduction> introduction = {};  // once connected
    bool proven = false;
    std::optional<Clock::time_point> in_vain_since = {};  // nobody listens, or hangs up
    int calls_in_vain = 0;                                // since then
    std::optional<Clock::time_point> again = {};          // no call is under way; the next one
  };
  using Callers = std::map<std::uint32_t, Caller>;  // the oldest first
  using Calls = std::unordered_map<int, Call>;

  // Reads what has come of the rank. Whether more can come.
  static bool hear_rank(Caller& caller) noexcept;
  net::Introduction::Outcome advance(Caller& caller, int& peer);
  void drop(Callers::iterator caller, bool is_stranger);
  void welcome(Callers::iterator caller, int peer);
  void dial(int peer, Call& call);
  void advance(int peer, Call& call);
  void call_in_vain(Call& call);
  void call_later(Call& call, Clock::duration pause);
  void fail(int peer, std::exception_ptr why);

  LobbyOwner& owner_;
  net::Poller& poller_;
  Credentials& credentials_;
  const int size_;
  core::UniqueFd listener_;
  Address address_;
  Callers callers_;
  std::uint32_t next_caller_ = 0;
  Calls calls_;
  bool is_starved_ = false;  // there was no descriptor for a caller
};

}  // namespace col::gloo_backend
