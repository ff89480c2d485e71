// How the two ends of a new connection prove to each other who they are, before either says anything else.
//
//   listening side    a nonce
//   connecting side   a nonce, and its proof
//   listening side    its proof; if the other side's proof is wrong, an invalid proof, and the end
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include <col/proof.hpp>

#include "core/export/module_export.hpp"

namespace col::net {

// One side's part, over one socket. Never blocks. The socket belongs to the caller.
class COL_MODULE_EXPORT Introduction {
 public:
  enum class Outcome {
    pending,  // not complete: call advance() when the socket can be read
    proven,
    refused,  // the other side has another secret
    closed,   // the other side has left before, or the connection failed
  };

  // `purpose`: the protocol, with its version. `connection`: a name for it, which is equal on both sides. `secret`:
  // what both know, and nobody else.
  Introduction(int socket, ProofRole role, std::string_view purpose, std::string secret, std::string connection);

  // Goes on with the data that has arrived. Never reads more than the other side's part of the introduction.
  Outcome advance();
  int socket() const noexcept { return socket_; }

 private:
  bool say(const std::string& text) const noexcept;
  // Whether `enough` bytes of this message are there. If not, closed_ says whether more can come.
  bool hear(std::size_t enough);
  Outcome advance_as_server();
  Outcome advance_as_client();
  ProofSubject subject(const std::string& other_nonce) const;

  int socket_;
  ProofRole role_;
  std::string purpose_;
  std::string secret_;
  std::string connection_;
  std::string nonce_ = make_nonce();
  std::string other_nonce_;
  std::string heard_;  // the part of the present message that has arrived
  bool closed_ = false;
};

}  // namespace col::net
