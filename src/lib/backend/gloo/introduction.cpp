#include "backend/gloo/introduction.hpp"

#include <array>
#include <cerrno>
#include <utility>

#include <fmt/format.h>
#include <sys/socket.h>

#include "core/log.hpp"
#include "net/address.hpp"

namespace col::gloo_backend {

std::string Credentials::connection(int from, int to) const {
  return fmt::format("{:016x} {}>{}", token_, from, to);
}

void Credentials::say_stranger(int socket) noexcept {
  if (has_said_.exchange(true, std::memory_order_relaxed)) return;
  core::log::warn("gloo: dropped a connection from {} that has not proven to be of this group; said once a group",
                  net::numeric_peer(socket));
}

Introduction::Introduction(int socket, ProofRole role, std::string secret, std::string connection)
    : socket_(socket), role_(role), secret_(std::move(secret)), connection_(std::move(connection)) {
  if (role_ == ProofRole::server) closed_ = !send(nonce_);
}

// It is little, and the first thing in the socket: what does not fit is a connection that has failed.
bool Introduction::send(const std::string& text) const noexcept {
  return ::send(socket_, text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT) == static_cast<ssize_t>(text.size());
}

bool Introduction::receive(std::size_t enough) {
  std::array<char, kNonceBytes + kProofBytes> buffer;
  while (!closed_ && heard_.size() < enough) {
    const ssize_t got = ::recv(socket_, buffer.data(), enough - heard_.size(), MSG_DONTWAIT);
    if (got > 0) {
      heard_.append(buffer.data(), static_cast<std::size_t>(got));
    } else if (got < 0 && errno == EAGAIN) {
      return false;
    } else if (got == 0 || errno != EINTR) {
      closed_ = true;
    }
  }
  return !closed_;
}

ProofSubject Introduction::subject(const std::string& other_nonce) const {
  const bool listens = role_ == ProofRole::server;
  return {.purpose = "col-gloo/2",
          .job = connection_,
          .server_nonce = listens ? nonce_ : other_nonce,
          .client_nonce = listens ? other_nonce : nonce_};
}

Introduction::Outcome Introduction::advance() {
  const Outcome outcome = role_ == ProofRole::server ? advance_as_server() : advance_as_client();
  return closed_ ? Outcome::closed : outcome;
}

Introduction::Outcome Introduction::advance_as_server() {
  if (!receive(kNonceBytes + kProofBytes)) return Outcome::pending;
  other_nonce_ = heard_.substr(0, kNonceBytes);
  if (!is_proof(heard_.substr(kNonceBytes), secret_, ProofRole::client, subject(other_nonce_))) {
    // So that a rank of another group by the same name knows.
    (void)send(std::string(kProofBytes, '-'));
    return Outcome::refused;
  }
  closed_ = !send(make_proof(secret_, ProofRole::server, subject(other_nonce_)));
  return Outcome::proven;
}

Introduction::Outcome Introduction::advance_as_client() {
  if (other_nonce_.empty()) {
    if (!receive(kNonceBytes)) return Outcome::pending;
    other_nonce_ = std::exchange(heard_, {});
    closed_ = !send(nonce_ + make_proof(secret_, ProofRole::client, subject(other_nonce_)));
  }
  if (!receive(kProofBytes)) return Outcome::pending;
  return is_proof(heard_, secret_, ProofRole::server, subject(other_nonce_)) ? Outcome::proven : Outcome::refused;
}

}  // namespace col::gloo_backend
