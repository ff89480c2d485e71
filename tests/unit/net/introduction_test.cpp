// How the two ends of a new connection prove who they are.
#include <array>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include <sys/socket.h>

#include <col/proof.hpp>

#include "core/unique_fd.hpp"
#include "net/introduction.hpp"
#include "support/catch.hpp"

using namespace col;

TEST_CASE("net introduction: both sides are proven, and a replay, a reflection or another pair of ranks is refused") {
  using col::net::Introduction;
  constexpr std::string_view kPurpose = "test/1";
  using Outcome = Introduction::Outcome;
  const auto pair_of_sockets = [] {
    std::array<int, 2> fds{};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds.data()) != 0) throw std::runtime_error("socketpair");
    return std::pair(core::UniqueFd(fds[0]), core::UniqueFd(fds[1]));
  };
  const auto meet = [&](const std::string& secret, const std::string& connection) {
    const auto [left, right] = pair_of_sockets();
    Introduction server(left.get(), ProofRole::server, kPurpose, "sesame", "t 1>0");
    Introduction client(right.get(), ProofRole::client, kPurpose, secret, connection);
    CHECK(client.advance() == Outcome::pending);
    const Outcome heard = server.advance();
    return std::pair(heard, client.advance());
  };
  CHECK(meet("sesame", "t 1>0") == std::pair(Outcome::proven, Outcome::proven));
  CHECK(meet("sesamf", "t 1>0") == std::pair(Outcome::refused, Outcome::refused));
  CHECK(meet("sesame", "t 2>0") == std::pair(Outcome::refused, Outcome::refused));
  CHECK(meet("sesame", "u 1>0") == std::pair(Outcome::refused, Outcome::refused));

  const auto read = [](int fd, std::size_t bytes) {
    std::string text(bytes, '\0');
    text.resize(static_cast<std::size_t>(::recv(fd, text.data(), bytes, MSG_DONTWAIT)));
    return text;
  };
  const auto say = [](int fd, const std::string& text) {
    CHECK(::send(fd, text.data(), text.size(), 0) == static_cast<ssize_t>(text.size()));
  };
  // What a client has said to one server, said to another.
  const auto [first, second] = pair_of_sockets();
  Introduction client(first.get(), ProofRole::client, kPurpose, "sesame", "t 1>0");
  say(second.get(), make_nonce());
  CHECK(client.advance() == Outcome::pending);
  const std::string hello = read(second.get(), kNonceBytes + kProofBytes);
  REQUIRE(hello.size() == kNonceBytes + kProofBytes);
  CHECK(hello.find("sesame") == std::string::npos);
  const auto [third, fourth] = pair_of_sockets();
  Introduction server(third.get(), ProofRole::server, kPurpose, "sesame", "t 1>0");
  say(fourth.get(), hello);
  CHECK(server.advance() == Outcome::refused);
  // The client's own proof, sent back to it.
  say(second.get(), hello.substr(kNonceBytes));
  CHECK(client.advance() == Outcome::refused);
}
