#include "backend/ucx/introduction.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

#include <fmt/format.h>

namespace col::ucx_backend {

Introduction::Introduction(std::string secret, int rank, int peer)
    : secret_(std::move(secret)),
      connection_(fmt::format("{}-{}", std::min(rank, peer), std::max(rank, peer))),
      is_lower_(rank < peer) {}

ProofSubject Introduction::subject(std::string_view purpose, std::string_view theirs) const {
  return {.purpose = purpose,
          .job = connection_,
          .server_nonce = is_lower_ ? nonce_ : theirs,
          .client_nonce = is_lower_ ? theirs : nonce_};
}

std::string Introduction::answer(std::string_view theirs) const {
  return nonce_ + make_proof(secret_, own_role(), subject("col-ucx/1", theirs));
}

std::optional<Keys> Introduction::check(std::string_view words) const {
  if (words.size() != kAnswerBytes) return std::nullopt;
  const std::string_view theirs = words.substr(0, kNonceBytes);
  if (!is_proof(words.substr(kNonceBytes), secret_, other_role(), subject("col-ucx/1", theirs))) return std::nullopt;
  return Keys{.in = key(other_role(), theirs), .out = key(own_role(), theirs)};
}

std::uint64_t Introduction::key(ProofRole of, std::string_view theirs) const {
  const std::string text = make_proof(secret_, of, subject("col-ucx-key/1", theirs));
  std::uint64_t key = 0;
  std::from_chars(text.data(), text.data() + 16, key, 16);
  return key;
}

}  // namespace col::ucx_backend
