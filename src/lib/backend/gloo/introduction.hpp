// How the two ends of a new connection prove to each other which ranks of which group they are.
//
//   listening side    a nonce
//   connecting side   a nonce, and its proof
//   listening side    its proof; if the other side's proof is wrong, an invalid proof, and the end
//
// The secret belongs to the listening rank and is new for each group. The others know it with its address.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include <col/proof.hpp>

namespace col::gloo_backend {

// What one rank of a group uses to prove its identity.
class Credentials {
 public:
  // `token`: the group's token. `secret`: new for this rank and group.
  Credentials(std::uint64_t token, int rank, std::string secret)
      : token_(token), rank_(rank), secret_(std::move(secret)) {}

  int rank() const noexcept { return rank_; }
  // What the others have to know to connect here.
  const std::string& secret() const noexcept { return secret_; }
  // The name of the connection that `from` makes to `to`.
  std::string connection(int from, int to) const;
  // Logs once that the other end of `socket` was dropped. Any thread may call it.
  void say_stranger(int socket) noexcept;

 private:
  const std::uint64_t token_;
  const int rank_;
  const std::string secret_;
  std::atomic<bool> has_said_{false};  // relaxed: no other data depends on it
};

// One side's part, over one socket. Never blocks. The socket belongs to the caller.
class Introduction {
 public:
  enum class Outcome {
    pending,  // not complete: call advance() when the socket can be read
    proven,
    refused,  // the other side has another secret
    closed,   // the other side has left before, or the connection failed
  };

  // `connection` names group and ranks, and is equal on both sides.
  Introduction(int socket, ProofRole role, std::string secret, std::string connection);

  // Goes on with the data that has arrived. Never reads more than the other side's part of the introduction.
  Outcome advance();
  int socket() const noexcept { return socket_; }

 private:
  bool send(const std::string& text) const noexcept;
  // Whether `enough` bytes of this message are there. If not, closed_ says whether more can come.
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
  std::string heard_;  // the part of the present message that has arrived
  bool closed_ = false;
};

}  // namespace col::gloo_backend
