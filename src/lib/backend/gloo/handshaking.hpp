// Makes sure that a pair of Gloo connects only to the rank that it is for. A part of transport.cpp, which alone uses
// protected members of Gloo.
#pragma once

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <gloo/common/error.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "backend/gloo/introduction.hpp"

namespace col::gloo_backend {

// Replaces the steps of connection set-up of the base class, in those (older) Gloo versions in which the pair does
// them. In newer versions, the device sets up connections, and each has its own number. The base would accept the first
// caller. This class goes on listening until a caller has proven who it is. It is a template, because it names members
// that may be absent.
//
// For all functions: the caller holds the pair's mutex.
template <class Base>
class Handshaking : public Base {
 protected:
  template <class... Args>
  explicit Handshaking(Credentials& credentials, Args... args) : Base(args...), credentials_(credentials) {}

  // Whether nobody has connected while only the base class handled events. Call it once, before anything else.
  bool starts_well() {
    if constexpr (kPairConnects) {
      if (this->state_ != Base::LISTENING) return false;
      ::fcntl(this->fd_, F_SETFL, ::fcntl(this->fd_, F_GETFL) | O_NONBLOCK);
      // Gloo lets one caller wait; a caller that finds no room tries again after a second
      ::listen(this->fd_, kBacklog);
    }
    return true;
  }

  // Handles an event before the pair is connected. Throws IoException if it cannot be connected any more.
  void handshake() {
    if constexpr (kPairConnects) {
      if (this->state_ == Base::LISTENING) return hear_callers();
      if (this->state_ == Base::CONNECTING) return introduce();
    }
  }

  // Called when it stops listening.
  void forget_callers() {
    while (!callers_.empty()) drop(callers_.begin());
  }

  // Whether the other side has another secret.
  bool refused() const noexcept { return refused_; }

 private:
  static constexpr bool kPairConnects = requires(Handshaking & self) { self.handleListening(); };
  // The largest number of callers that are connected and have not proven who they are. One more replaces the oldest.
  static constexpr std::size_t kMaxCallers = 16;
  static constexpr int kBacklog = 128;
  // How often a rank calls again after its introduction was cut short because strangers took all places.
  static constexpr int kMaxCalls = 50;
  using Callers = std::vector<Introduction>;

  void hear_callers() {
    for (auto caller = callers_.begin(); caller != callers_.end();) {
      switch (caller->advance()) {
        case Introduction::Outcome::pending:
          ++caller;
          break;
        case Introduction::Outcome::proven:
          return take(caller);
        case Introduction::Outcome::refused:
        case Introduction::Outcome::closed:
          caller = drop(caller);
      }
    }
    int socket = -1;
    while ((socket = ::accept4(this->fd_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
      if (callers_.size() == kMaxCallers) drop(callers_.begin());
      callers_.emplace_back(socket, ProofRole::server, credentials_.secret(credentials_.rank()),
                            credentials_.connection(this->rank_, credentials_.rank()));
      this->device_->registerDescriptor(socket, EPOLLIN, this);
    }
    if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
      throw ::gloo::IoException(fmt::format("accept: {}", std::strerror(errno)));
  }

  typename Callers::iterator drop(typename Callers::iterator caller) {
    const int socket = caller->socket();
    credentials_.say_stranger(socket);
    this->device_->unregisterDescriptor(socket, this);
    ::close(socket);
    return callers_.erase(caller);
  }

  void take(typename Callers::iterator caller) {
    const int listener = std::exchange(this->fd_, caller->socket());
    this->device_->unregisterDescriptor(this->fd_, this);
    callers_.erase(caller);
    this->device_->unregisterDescriptor(listener, this);
    ::close(listener);
    this->handleConnected();
  }

  void introduce() {
    if (!introduction_) {
      int error = 0;
      socklen_t size = sizeof error;
      if (::getsockopt(this->fd_, SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
      if (error != 0) throw ::gloo::IoException(fmt::format("connect: {}", std::strerror(error)));
      introduction_.emplace(this->fd_, ProofRole::client, credentials_.secret(this->rank_),
                            credentials_.connection(credentials_.rank(), this->rank_));
      this->device_->registerDescriptor(this->fd_, EPOLLIN, this);
      return;
    }
    switch (introduction_->advance()) {
      case Introduction::Outcome::pending:
        return;
      case Introduction::Outcome::proven:
        introduction_.reset();
        return this->handleConnected();
      case Introduction::Outcome::refused:
        refused_ = true;
        throw ::gloo::IoException("the other side is of another group");
      case Introduction::Outcome::closed:
        return call_again();
    }
  }

  void call_again() {
    introduction_.reset();
    if (++calls_ == kMaxCalls) throw ::gloo::IoException("the other side hangs up before it has said who it is");
    this->device_->unregisterDescriptor(this->fd_, this);
    ::close(this->fd_);
    const sockaddr_storage& peer = this->peer_.getSockaddr();
    this->fd_ = ::socket(peer.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    const socklen_t size = peer.ss_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    if (::connect(this->fd_, reinterpret_cast<const sockaddr*>(&peer), size) != 0 && errno != EINPROGRESS)
      throw ::gloo::IoException(fmt::format("connect: {}", std::strerror(errno)));
    this->device_->registerDescriptor(this->fd_, EPOLLIN | EPOLLOUT, this);
  }

  Credentials& credentials_;
  Callers callers_;                           // while it listens
  std::optional<Introduction> introduction_;  // while it connects
  int calls_ = 0;
  bool refused_ = false;
};

}  // namespace col::gloo_backend
