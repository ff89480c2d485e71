#include "backend/gloo/lobby.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gloo/common/error.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <col/error.hpp>

#include "backend/gloo/connection.hpp"
#include "net/connect.hpp"
#include "net/listener.hpp"
#include "net/stream.hpp"

namespace col::gloo_backend {
namespace {

using namespace std::chrono_literals;

// Callers that have not proven who they are, beyond one of each rank. One more replaces the oldest.
constexpr std::size_t kMostStrangers = 32;
// How long one may take to prove who it is.
constexpr auto kMostHesitation = 5s;
// A call that was cut short, because strangers took all places, or that was refused, because the peer has just left or
// died: it is made again, for as long as news of the peer may be under way.
constexpr auto kPause = 10ms;
constexpr auto kMostPatience = 500ms;
// And as often, as a busy machine may let that time pass between two calls.
constexpr int kLeastCallsInVain = 5;
// How long the connection that a peer is making may take before this rank calls again.
constexpr auto kOtherWay = 200ms;
constexpr auto kStarvedPause = 100ms;

// Of the proofs.
constexpr std::string_view kPurpose = "col-gloo/2";
constexpr char kStays = '+', kOtherWayIsMade = '-';

// A few bytes, and the first or the last of an introduction: what does not fit is a connection that has failed.
bool say(int socket, const void* data, std::size_t bytes) noexcept {
  return net::send(socket, {static_cast<const char*>(data), bytes}).bytes == bytes;
}

}  // namespace

void throw_errno(const char* what) {
  const int error = errno;
  const bool needs_descriptors = error == EMFILE || error == ENFILE;
  throw Error(net::is_exhausted(error) || error == ENOSPC ? ErrorCode::resource : ErrorCode::io,
              fmt::format("gloo: {}: {}{}", what, std::strerror(error),
                          needs_descriptors ? "; raise the limit of open files (ulimit -n)" : ""));
}

Lobby::Lobby(LobbyOwner& owner, net::Poller& poller, Credentials& credentials, int size, const Interface& interface)
    : owner_(owner), poller_(poller), credentials_(credentials), size_(size) {
  address_.sockaddr = interface.sockaddr;
  listener_ = net::listen_at(reinterpret_cast<sockaddr*>(&address_.sockaddr), interface.sockaddr_bytes);
  if (!listener_) throw_errno("listen");
  address_.secret = credentials_.secret();
  poller_.watch(listener_.get(), event_id(Target::listener));
}

void Lobby::close() noexcept {
  if (listener_) {
    poller_.unwatch(listener_.get());
    ::shutdown(listener_.get(), SHUT_RDWR);  // as a process that was forked meanwhile may have a copy of it
  }
  for (auto& [number, caller] : callers_) {
    hear_rank(caller);  // it may have come since the last turn
    if (!caller.has_said_rank()) credentials_.say_stranger(caller.socket.get());
    poller_.unwatch(caller.socket.get());
  }
  for (const auto& [peer, call] : calls_) {
    if (call.socket) poller_.unwatch(call.socket.get());
  }
  listener_.reset();
  callers_.clear();
  calls_.clear();
}

// ---- Those who call

void Lobby::hear_listener() {
  if (!listener_) return;
  is_starved_ = false;
  for (;;) {
    core::UniqueFd socket = net::accept(listener_.get());
    if (!socket) {
      if (errno == EAGAIN) return;
      // It tries again, as descriptors may become free.
      is_starved_ = true;
      return poller_.set_alarm(kStarvedPause);
    }
    if (callers_.size() >= kMostStrangers + static_cast<std::size_t>(size_)) drop(callers_.begin(), true);
    net::set_no_delay(socket.get());
    const std::uint32_t number = next_caller_++;
    try {
      poller_.watch(socket.get(), event_id(Target::caller, number));
    } catch (const Error&) {
      continue;  // it calls again
    }
    if (callers_.empty()) poller_.set_alarm(0ms);  // do_what_is_due() says when
    callers_.emplace(number, Caller{.socket = std::move(socket), .since = Clock::now()});
  }
}

bool Lobby::hear_rank(Caller& caller) noexcept {
  while (!caller.has_said_rank()) {
    const net::Moved moved = net::receive(caller.socket.get(), std::span(caller.rank).subspan(caller.rank_bytes));
    if (moved.bytes == 0) return !moved.has_ended;
    caller.rank_bytes += moved.bytes;
  }
  return true;
}

net::Introduction::Outcome Lobby::advance(Caller& caller, int& peer) {
  if (!hear_rank(caller)) return net::Introduction::Outcome::closed;
  if (!caller.has_said_rank()) return net::Introduction::Outcome::pending;
  std::uint32_t said = 0;
  std::memcpy(&said, caller.rank.data(), sizeof(said));
  peer = static_cast<int>(ntohl(said));
  if (peer < 0 || peer >= size_ || peer == credentials_.rank()) return net::Introduction::Outcome::refused;
  if (!caller.introduction)
    caller.introduction.emplace(caller.socket.get(), ProofRole::server, kPurpose, credentials_.secret(),
                                credentials_.connection(peer, credentials_.rank()));
  return caller.introduction->advance();
}

void Lobby::hear_caller(std::uint32_t number) {
  const auto caller = callers_.find(number);
  if (caller == callers_.end()) return;
  int peer = -1;
  switch (advance(caller->second, peer)) {
    case net::Introduction::Outcome::pending:
      return;
    case net::Introduction::Outcome::proven:
      return welcome(caller, peer);
    case net::Introduction::Outcome::refused:
      return drop(caller, true);
    case net::Introduction::Outcome::closed:
      return drop(caller, !caller->second.has_said_rank());
  }
}

void Lobby::drop(Callers::iterator caller, bool is_stranger) {
  const int socket = caller->second.socket.get();
  if (is_stranger) credentials_.say_stranger(socket);
  poller_.unwatch(socket);
  callers_.erase(caller);
}

void Lobby::welcome(Callers::iterator caller, int peer) {
  const auto own = calls_.find(peer);
  const bool is_being_made = own != calls_.end() && !own->second.again && credentials_.rank() < peer;
  const bool stays = owner_.wants(peer) && !is_being_made;
  const char answer = stays ? kStays : kOtherWayIsMade;
  if (!say(caller->second.socket.get(), &answer, 1) || !stays) return drop(caller, false);
  core::UniqueFd socket = std::move(caller->second.socket);
  callers_.erase(caller);
  poller_.rewatch(socket.get(), event_id(Target::connection, static_cast<std::uint32_t>(peer)));
  owner_.connected(peer, std::move(socket));
}

// ---- This rank's calls

void Lobby::call(int peer, const Address& address) {
  const auto [found, is_new] = calls_.try_emplace(peer, Call{.address = address});
  if (!is_new) return;
  try {
    dial(peer, found->second);
  } catch (...) {
    fail(peer, std::current_exception());
  }
}

void Lobby::dial(int peer, Call& call) {
  call.again.reset();
  call.introduction.reset();
  call.proven = false;
  if (call.socket) poller_.unwatch(call.socket.get());
  call.socket = net::make_socket(call.address.sockaddr.ss_family);
  if (!call.socket) throw_errno("socket");
  net::set_no_delay(call.socket.get());
  const auto* const generic = reinterpret_cast<const sockaddr*>(&call.address.sockaddr);
  const int error = net::begin_connect(call.socket.get(), generic, call.address.sockaddr_bytes());
  if (error == ECONNREFUSED) return call_in_vain(call);
  if (error != 0) throw ::gloo::IoException(fmt::format("connect: {}", std::strerror(error)));
  poller_.watch(call.socket.get(), event_id(Target::call, static_cast<std::uint32_t>(peer)));
}

void Lobby::hear_call(int peer) {
  const auto found = calls_.find(peer);
  if (found != calls_.end() && !found->second.again) advance(peer, found->second);
}

void Lobby::advance(int peer, Call& call) {
  const int socket = call.socket.get();
  if (!call.introduction) {
    const int error = net::end_of_connect(socket);
    if (error == ECONNREFUSED || error == ECONNRESET) return call_in_vain(call);
    if (error != 0) return fail(peer, io_failure(fmt::format("connect: {}", std::strerror(error))));
    const std::uint32_t rank = htonl(static_cast<std::uint32_t>(credentials_.rank()));
    if (!say(socket, &rank, sizeof(rank))) return call_in_vain(call);
    call.introduction.emplace(socket, ProofRole::client, kPurpose, call.address.secret,
                              credentials_.connection(credentials_.rank(), peer));
  }
  if (!call.proven) {
    switch (call.introduction->advance()) {
      case net::Introduction::Outcome::pending:
        return;
      case net::Introduction::Outcome::closed:
        return call_in_vain(call);
      case net::Introduction::Outcome::refused:
        return fail(peer, std::make_exception_ptr(Error(
                              ErrorCode::mismatch,
                              fmt::format("the connection to rank {} leads to somebody else, who is of another job or "
                                          "group; create the group again",
                                          peer),
                              {}, peer)));
      case net::Introduction::Outcome::proven:
        call.proven = true;
    }
  }
  char answer = 0;
  const net::Moved moved = net::receive(socket, {&answer, 1});
  if (moved.bytes == 0) return moved.has_ended ? call_in_vain(call) : void();
  if (answer != kStays) {
    call.in_vain_since.reset();
    call.calls_in_vain = 0;
    if (owner_.wants(peer)) return call_later(call, kOtherWay);
    poller_.unwatch(socket);
    calls_.erase(peer);
    return;
  }
  core::UniqueFd connected = std::move(call.socket);
  calls_.erase(peer);
  poller_.rewatch(connected.get(), event_id(Target::connection, static_cast<std::uint32_t>(peer)));
  owner_.connected(peer, std::move(connected));
}

void Lobby::call_in_vain(Call& call) {
  if (!call.in_vain_since) call.in_vain_since = Clock::now();
  ++call.calls_in_vain;
  call_later(call, kPause);
}

void Lobby::call_later(Call& call, Clock::duration pause) {
  poller_.unwatch(call.socket.get());
  call.socket.reset();
  call.again = Clock::now() + pause;
  poller_.set_alarm(0ms);  // do_what_is_due() says when
}

void Lobby::fail(int peer, std::exception_ptr why) {
  const auto found = calls_.find(peer);
  if (found->second.socket) poller_.unwatch(found->second.socket.get());
  calls_.erase(found);
  if (owner_.wants(peer)) owner_.unreachable(peer, std::move(why));
}

std::optional<Lobby::Clock::time_point> Lobby::do_what_is_due(Clock::time_point now) {
  std::optional<Clock::time_point> next;
  const auto sooner = [&](Clock::time_point then) { next = next ? std::min(*next, then) : then; };
  if (is_starved_) {
    hear_listener();
    if (is_starved_) sooner(now + kStarvedPause);
  }
  while (!callers_.empty() && callers_.begin()->second.since + kMostHesitation <= now) drop(callers_.begin(), true);
  if (!callers_.empty()) sooner(callers_.begin()->second.since + kMostHesitation);
  std::vector<int> due;
  for (const auto& [peer, call] : calls_) {
    if (!call.again) continue;
    if (*call.again <= now) {
      due.push_back(peer);
    } else {
      sooner(*call.again);
    }
  }
  for (const int peer : due) {
    const auto found = calls_.find(peer);
    if (found == calls_.end()) continue;
    Call& call = found->second;
    if (!owner_.wants(peer)) {
      calls_.erase(peer);
    } else if (call.calls_in_vain >= kLeastCallsInVain && now - *call.in_vain_since > kMostPatience) {
      fail(peer, io_failure("it does not answer"));
    } else {
      try {
        dial(peer, call);
      } catch (...) {
        fail(peer, std::current_exception());
      }
    }
  }
  return next;
}

}  // namespace col::gloo_backend
