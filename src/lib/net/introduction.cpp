#include "net/introduction.hpp"

#include <array>
#include <utility>

#include "net/stream.hpp"

namespace col::net {

Introduction::Introduction(int socket, ProofRole role, std::string_view purpose, std::string secret,
                           std::string connection)
    : socket_(socket), role_(role), purpose_(purpose), secret_(std::move(secret)), connection_(std::move(connection)) {
  if (role_ == ProofRole::server) closed_ = !say(nonce_);
}

// It is little, and the first thing in the socket: what does not fit is a connection that has failed.
bool Introduction::say(const std::string& text) const noexcept {
  return send(socket_, text).bytes == text.size();
}

bool Introduction::hear(std::size_t enough) {
  std::array<char, kNonceBytes + kProofBytes> buffer;
  while (!closed_ && heard_.size() < enough) {
    const Moved moved = receive(socket_, std::span(buffer).first(enough - heard_.size()));
    closed_ = moved.has_ended;
    heard_.append(buffer.data(), moved.bytes);
    if (moved.bytes == 0) break;
  }
  return !closed_ && heard_.size() >= enough;
}

ProofSubject Introduction::subject(const std::string& other_nonce) const {
  const bool listens = role_ == ProofRole::server;
  return {.purpose = purpose_,
          .job = connection_,
          .server_nonce = listens ? nonce_ : other_nonce,
          .client_nonce = listens ? other_nonce : nonce_};
}

Introduction::Outcome Introduction::advance() {
  const Outcome outcome = role_ == ProofRole::server ? advance_as_server() : advance_as_client();
  return closed_ ? Outcome::closed : outcome;
}

Introduction::Outcome Introduction::advance_as_server() {
  if (!hear(kNonceBytes + kProofBytes)) return Outcome::pending;
  other_nonce_ = heard_.substr(0, kNonceBytes);
  if (!is_proof(heard_.substr(kNonceBytes), secret_, ProofRole::client, subject(other_nonce_))) {
    // So that a rank of another group by the same name knows.
    (void)say(std::string(kProofBytes, '-'));
    return Outcome::refused;
  }
  closed_ = !say(make_proof(secret_, ProofRole::server, subject(other_nonce_)));
  return Outcome::proven;
}

Introduction::Outcome Introduction::advance_as_client() {
  if (other_nonce_.empty()) {
    if (!hear(kNonceBytes)) return Outcome::pending;
    other_nonce_ = std::exchange(heard_, {});
    closed_ = !say(nonce_ + make_proof(secret_, ProofRole::client, subject(other_nonce_)));
  }
  if (!hear(kProofBytes)) return Outcome::pending;
  return is_proof(heard_, secret_, ProofRole::server, subject(other_nonce_)) ? Outcome::proven : Outcome::refused;
}

}  // namespace col::net
