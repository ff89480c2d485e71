// A mutual proof that two processes know the same secret, without sending it. Each side sends a nonce, random digits,
// and answers with an HMAC-SHA-256 over both. The TCP store, Gloo's connections and colrun's meeting use it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include <col/export.hpp>

namespace col {

// The lengths of nonces and proofs. Both are hexadecimal digits, so that they fit into any protocol.
inline constexpr std::size_t kNonceBytes = 64;
inline constexpr std::size_t kProofBytes = 64;

// The side that makes a proof: the one that listens (server) or the one that connects (client). A proof of one role is
// not valid for the other, so that nobody can send a proof back to its maker.
enum class ProofRole : char { server = 's', client = 'c' };

// The facts that a proof covers in addition to the role. A proof for one subject is not valid for another.
struct ProofSubject {
  std::string_view purpose;       // the protocol, its version, and what else both sides know about the connection
  std::string_view job = {};      // id and restart count; may be empty
  std::string_view server_nonce;  // the other side checks its own nonce here, which shows that the proof is new
  std::string_view client_nonce;
};

// Returns 256 random bits as digits, so that no nonce comes twice. Throws io if the system gives none. Thread safe.
COL_EXPORT std::string make_nonce();

// The proof that `by` knows `secret`. With an empty secret, everybody can make it. Takes microseconds; the first call
// in a process loads libcrypto and takes about a millisecond. Throws unavailable if libcrypto is missing. Thread safe.
COL_EXPORT std::string make_proof(std::string_view secret, ProofRole by, const ProofSubject& subject);

// Returns whether `proof` is make_proof() of the other arguments. `proof` may be any bytes. The time does not depend on
// where the two differ.
COL_EXPORT bool is_proof(std::string_view proof, std::string_view secret, ProofRole by, const ProofSubject& subject);

}  // namespace col
