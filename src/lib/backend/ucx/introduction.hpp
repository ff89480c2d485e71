// How two ranks prove to each other who they are, before either believes a message of the other.
//
// UCX connects to whoever listens at an address, and takes messages from whoever connects. So every rank publishes a
// secret with its address, in the store, which knows the members of the job. Two ranks prove to each other that they
// know both secrets and the token of the group, over nonces of both:
//
//   A                                  B
//     | -- hello(nonce of A) --------> |   B answers to the address that the store has for A
//     | <- proof(nonce of B, proof) -- |   A believes B
//     | -- proof(nonce of A, proof) -> |   B believes A
//
// The proofs give a key for each direction, which every later message carries. No secret is sent, nor a key before the
// other side has proven itself.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <col/proof.hpp>

namespace col::ucx_backend {

struct Keys {
  std::uint64_t in = 0, out = 0;  // of messages from the peer, and to it
};

class Introduction {
 public:
  // `secret` is what both ranks know and nobody else.
  Introduction(std::string secret, int rank, int peer);

  // What hello() carries: this rank's nonce, which is the same as long as the object lives.
  const std::string& nonce() const noexcept { return nonce_; }
  // For a peer with the nonce `theirs`: this rank's nonce and its proof.
  std::string answer(std::string_view theirs) const;
  static constexpr std::size_t kAnswerBytes = kNonceBytes + kProofBytes;
  // The keys, if `words` are the peer's answer to this rank's nonce.
  std::optional<Keys> check(std::string_view words) const;

 private:
  // The rank with the lower number is the server of the proof.
  ProofRole own_role() const noexcept { return is_lower_ ? ProofRole::server : ProofRole::client; }
  ProofRole other_role() const noexcept { return is_lower_ ? ProofRole::client : ProofRole::server; }
  ProofSubject subject(std::string_view purpose, std::string_view theirs) const;
  std::uint64_t key(ProofRole of, std::string_view theirs) const;

  const std::string secret_;
  const std::string connection_;
  const bool is_lower_;
  const std::string nonce_ = make_nonce();
};

}  // namespace col::ucx_backend
