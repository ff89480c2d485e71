// Proofs that a secret is known, compared with those of another implementation (Python's hmac).
#include <set>
#include <string>

#include <col/proof.hpp>

#include "support/catch.hpp"

using namespace col;

namespace {

const ProofSubject kSubject{.purpose = "test/1", .job = "train/2", .server_nonce = "abc", .client_nonce = "def"};

}  // namespace

TEST_CASE("proof: it is the HMAC-SHA-256 of everything that it covers", "[core]") {
  // hmac.new(secret, b"col-proof/1" + role + fields, "sha256"), each field with its length in 8 bytes before it.
  CHECK(make_proof("sesame", ProofRole::client, kSubject) ==
        "e975c1031cbe4ed35e473c8ccaa931619753bb006745e317936c35c95feabf16");
  CHECK(make_proof("", ProofRole::server, {}) == "6dd0a0899ea463435a92f31b0a9632c514182859229e8e447fff67098f6452a7");
}

TEST_CASE("proof: another secret, role, purpose, job or nonce makes another proof", "[core]") {
  std::set<std::string> proofs;
  const auto add = [&](std::string_view secret, ProofRole role, const ProofSubject& subject) {
    CHECK(proofs.insert(make_proof(secret, role, subject)).second);
    CHECK(is_proof(make_proof(secret, role, subject), secret, role, subject));
  };
  for (const auto role : {ProofRole::server, ProofRole::client}) {
    add("sesame", role, kSubject);
    add("sesamf", role, kSubject);
    add("", role, kSubject);
    for (const auto field :
         {&ProofSubject::purpose, &ProofSubject::job, &ProofSubject::server_nonce, &ProofSubject::client_nonce}) {
      for (const char* text : {"", "x"}) {
        ProofSubject other = kSubject;
        other.*field = text;
        add("sesame", role, other);
      }
    }
    // What is moved from one field to the next.
    ProofSubject moved = kSubject;
    moved.server_nonce = "abcd";
    moved.client_nonce = "ef";
    add("sesame", role, moved);
  }
}

TEST_CASE("proof: every other text is none", "[core]") {
  const std::string proof = make_proof("sesame", ProofRole::client, kSubject);
  CHECK(proof.size() == kProofBytes);
  for (std::size_t i = 0; i < proof.size(); ++i) {
    std::string other = proof;
    other[i] = static_cast<char>(other[i] ^ 1);
    CHECK_FALSE(is_proof(other, "sesame", ProofRole::client, kSubject));
  }
  for (const std::string& other : {std::string(), proof + "0", proof.substr(1), std::string(kProofBytes, '\0')})
    CHECK_FALSE(is_proof(other, "sesame", ProofRole::client, kSubject));
}

TEST_CASE("proof: no two nonces are equal", "[core]") {
  std::set<std::string> nonces;
  for (int i = 0; i < 100; ++i) nonces.insert(make_nonce());
  CHECK(nonces.size() == 100);
  CHECK(nonces.begin()->size() == kNonceBytes);
  CHECK(nonces.begin()->find_first_not_of("0123456789abcdef") == std::string::npos);
}
