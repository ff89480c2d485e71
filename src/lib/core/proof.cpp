#include <col/proof.hpp>

#include <dlfcn.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/opensslv.h>
#include <sys/random.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <limits>
#include <system_error>

#include <fmt/format.h>

#include <col/error.hpp>

#include "core/clock/this_process.hpp"

namespace col {
namespace {

constexpr std::size_t kDigestBytes = 32;
static_assert(kProofBytes == 2 * kDigestBytes);

// The interface that the headers describe; another one has another name.
#define COL_TEXT_OF(x) #x
#define COL_SONAME(version) "libcrypto.so." COL_TEXT_OF(version)
constexpr const char* kLibrary = COL_SONAME(OPENSSL_SHLIB_VERSION);
#undef COL_SONAME
#undef COL_TEXT_OF

// Two digits a byte, in lower case.
std::string as_hex(std::string_view bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  text.reserve(2 * bytes.size());
  for (const char byte : bytes) {
    text += kDigits[static_cast<unsigned char>(byte) >> 4];
    text += kDigits[static_cast<unsigned char>(byte) & 0xf];
  }
  return text;
}

// What we use of libcrypto. It is loaded when a proof is first made: programs that make none start without it.
struct Libcrypto {
  decltype(&::HMAC) hmac = nullptr;
  decltype(&::EVP_sha256) sha256 = nullptr;
};

Libcrypto load() {
  // Never closed: it may have been in the program before, and its end is its own.
  void* const library = ::dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  Libcrypto crypto;
  if (library != nullptr) {
    crypto.hmac = reinterpret_cast<decltype(crypto.hmac)>(::dlsym(library, "HMAC"));
    crypto.sha256 = reinterpret_cast<decltype(crypto.sha256)>(::dlsym(library, "EVP_sha256"));
  }
  if (crypto.hmac != nullptr && crypto.sha256 != nullptr) return crypto;
  const char* const why = ::dlerror();
  throw Error(ErrorCode::unavailable,
              fmt::format("{} of OpenSSL, with which processes of a job prove who they are, cannot be loaded ({}); "
                          "install it (Debian: libssl3)",
                          kLibrary, why != nullptr ? why : "it lacks HMAC"));
}

const Libcrypto& libcrypto() {
  static const Libcrypto crypto = load();
  return crypto;
}

// With its length in front, so that no two lists of fields have the same bytes.
void append(std::string& text, std::string_view field) {
  for (std::uint64_t size = field.size(), i = 0; i < sizeof size; ++i)
    text += static_cast<char>(size >> (8 * i) & 0xff);
  text += field;
}

// The length is no secret, the bytes are.
bool equal_in_constant_time(std::string_view a, std::string_view b) noexcept {
  if (a.size() != b.size()) return false;
  volatile unsigned char difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    difference = static_cast<unsigned char>(difference | static_cast<unsigned char>(a[i] ^ b[i]));
  return difference == 0;
}

}  // namespace

std::string make_nonce() {
  std::string bytes(kNonceBytes / 2, '\0');
  // So few bytes are never cut short, and never wait once the machine has started.
  while (!core::random_bytes(std::as_writable_bytes(std::span(bytes)))) {
    if (errno != EINTR)
      throw Error(ErrorCode::io, fmt::format("the system gives no random bytes ({}); look whether a sandbox forbids "
                                             "getrandom(2)",
                                             std::generic_category().message(errno)));
  }
  return as_hex(bytes);
}

std::string make_proof(std::string_view secret, ProofRole by, const ProofSubject& subject) {
  std::string text = "col-proof/1";
  text += static_cast<char>(by);
  for (const std::string_view field : {subject.purpose, subject.job, subject.server_nonce, subject.client_nonce})
    append(text, field);
  if (secret.size() > static_cast<std::size_t>(std::numeric_limits<int>::max()))
    throw Error(ErrorCode::invalid_argument, "a secret of gigabytes; use one of 32 bytes");
  const Libcrypto& crypto = libcrypto();
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  const unsigned char* const made =
      crypto.hmac(crypto.sha256(), secret.empty() ? "" : secret.data(), static_cast<int>(secret.size()),
                  reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data(), &size);
  if (made == nullptr || size != kDigestBytes)
    throw Error(ErrorCode::unavailable,
                fmt::format("{} of OpenSSL refuses HMAC-SHA-256; look at its configuration (openssl.cnf)", kLibrary));
  return as_hex({reinterpret_cast<const char*>(digest.data()), size});
}

bool is_proof(std::string_view proof, std::string_view secret, ProofRole by, const ProofSubject& subject) {
  return equal_in_constant_time(proof, make_proof(secret, by, subject));
}

}  // namespace col
