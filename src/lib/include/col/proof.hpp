// How two processes prove to each other that they know one secret, without showing it: each sends a nonce, and each
// answers with an HMAC-SHA-256 over both. The TCP store, Gloo's connections and colrun's meeting of nodes do it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include <col/export.hpp>

namespace col {

// Nonces and proofs are hexadecimal digits, so that they fit into any protocol.
inline constexpr std::size_t kNonceBytes = 64;
inline constexpr std::size_t kProofBytes = 64;

// Who proves: the side that listens, or the side that connects. A proof of one is none of the other, so that nobody can
// send a proof back to whom it came from.
enum class ProofRole : char { server = 's', client = 'c' };

// What a proof covers beside the role. A proof of one subject is none of another.
struct ProofSubject {
  std::string_view purpose;       // the protocol and its version, and what else both sides know of the connection
  std::string_view job = {};      // id and restart count; may be empty
  std::string_view server_nonce;  // the other side checks its own nonce here: that makes the proof new
  std::string_view client_nonce;
};

// 256 random bits. Never used twice. Throws io when the system gives none. Thread safe.
COL_EXPORT std::string make_nonce();

// The proof that `by` knows `secret`, which may be empty: then everybody can make it. Takes microseconds, and about a
// millisecond the first time in a process, which loads libcrypto. Throws unavailable when that is not there. Thread
// safe.
COL_EXPORT std::string make_proof(std::string_view secret, ProofRole by, const ProofSubject& subject);

// Whether `proof`, which may be any bytes, is make_proof() of the rest. Takes as long whatever the difference is.
COL_EXPORT bool is_proof(std::string_view proof, std::string_view secret, ProofRole by, const ProofSubject& subject);

}  // namespace col
