#include "store/tcp/handshake.hpp"

#include <charconv>
#include <system_error>

#include <fmt/format.h>

#include <col/proof.hpp>

namespace col::store::tcp {
namespace {

ProofSubject subject(const Handshake& handshake, std::string_view client_nonce) {
  return {.purpose = kGreetingStart,
          .job = handshake.job,
          .server_nonce = handshake.server_nonce,
          .client_nonce = client_nonce};
}

}  // namespace

std::string greeting(std::string_view server_nonce) {
  return fmt::format("{}{}\n", kGreetingStart, server_nonce);
}

std::optional<std::string_view> nonce_in_greeting(std::string_view line) noexcept {
  if (!line.starts_with(kGreetingStart) || !line.ends_with('\n')) return std::nullopt;
  const std::string_view nonce = line.substr(kGreetingStart.size(), line.size() - kGreetingStart.size() - 1);
  if (nonce.size() != kNonceBytes) return std::nullopt;
  return nonce;
}

std::string make_hello(std::uint64_t id, const Handshake& handshake, std::string_view client_nonce) {
  const std::string proof = make_proof(handshake.token, ProofRole::client, subject(handshake, client_nonce));
  const std::string value = fmt::format("{}{}", client_nonce, proof);
  return encode(Request{.type = RequestType::hello, .id = id, .key = handshake.job, .value = value});
}

std::optional<std::string_view> check_hello(const Request& hello, const Handshake& handshake) {
  if (hello.value.size() != kNonceBytes + kProofBytes) return std::nullopt;
  const std::string_view nonce = hello.value.substr(0, kNonceBytes);
  if (!is_proof(hello.value.substr(kNonceBytes), handshake.token, ProofRole::client, subject(handshake, nonce)))
    return std::nullopt;
  return nonce;
}

std::string make_welcome(const Handshake& handshake, std::string_view client_nonce, std::size_t max_value_bytes) {
  return fmt::format("{}{}", make_proof(handshake.token, ProofRole::server, subject(handshake, client_nonce)),
                     max_value_bytes);
}

std::optional<std::size_t> check_welcome(std::string_view welcome, const Handshake& handshake,
                                         std::string_view client_nonce) {
  if (welcome.size() <= kProofBytes) return std::nullopt;
  const std::string_view digits = welcome.substr(kProofBytes);
  std::size_t max_value_bytes = 0;
  const char* const end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, max_value_bytes);
  if (error != std::errc() || stop != end) return std::nullopt;
  if (!is_proof(welcome.substr(0, kProofBytes), handshake.token, ProofRole::server, subject(handshake, client_nonce)))
    return std::nullopt;
  return max_value_bytes;
}

}  // namespace col::store::tcp
