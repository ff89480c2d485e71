// How the two ends of a new connection prove to each other which ranks of which group they are. Gloo itself takes
// whoever connects first for the peer.
//
//   who listens   a nonce
//   who connects  a nonce, and its proof
//   who listens   its proof; what is none, and the end, when that of the other is wrong
//
// The secret is the listening rank's, new for each group, which the others read in the store.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <col/proof.hpp>

namespace col::gloo_backend {

// What one rank of a group proves itself with.
class Credentials {
 public:
  // `token`: that of the group.
  Credentials(std::uint64_t token, int rank, int size)
      : token_(token), rank_(rank), secrets_(static_cast<std::size_t>(size)) {
    set_secret(rank, make_nonce());
  }

  int rank() const noexcept { return rank_; }
  // What peers that connect to `rank` need; empty while it is not known.
  const std::string& secret(int rank) const { return secrets_.at(static_cast<std::size_t>(rank)); }
  // Before anything connects to `rank`.
  void set_secret(int rank, std::string secret) { secrets_.at(static_cast<std::size_t>(rank)) = std::move(secret); }
  // The connection that `from` has made to `to`.
  std::string connection(int from, int to) const;
  // Logs, once, that the other end of `socket` was dropped. Any thread.
  void say_stranger(int socket) noexcept;

 private:
  const std::uint64_t token_;
  const int rank_;
  std::vector<std::string> secrets_;
  std::atomic<bool> has_said_{false};  // relaxed: it orders nothing
};

// One side over one socket. Never blocks. The socket is the caller's.
class Introduction {
 public:
  enum class Outcome {
    pending,  // more is to come: call advance() when the socket can be read
    proven,
    refused,  // the other side has another secret
    closed,   // it left before, or the connection failed
  };

  // `connection` names group and ranks, alike on both sides.
  Introduction(int socket, ProofRole role, std::string secret, std::string connection);

  // Goes on with what has arrived. Never reads more than the other side's part of the introduction.
  Outcome advance();
  int socket() const noexcept { return socket_; }

 private:
  bool send(const std::string& text) const noexcept;
  // Whether `enough` bytes of this message are there; when not, closed_ says whether there is hope.
  bool receive(std::size_t enough);
  Outcome advance_as_server();
  Outcome advance_as_client();
  ProofSubject subject(const std::string& other_nonce) const;

  int socket_;
  ProofRole role_;
  std::string secret_;
  std::string connection_;
  std::string nonce_ = make_nonce();
  std::string other_nonce_;
  std::string heard_;  // of the present message
  bool closed_ = false;
};

}  // namespace col::gloo_backend
