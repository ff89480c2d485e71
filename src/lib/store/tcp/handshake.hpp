// How client and server of the TCP store prove to each other that they know the job's token, which is never sent.
//
//   server -> client   the greeting, with a nonce
//   client -> server   hello: its job, a nonce, and its proof
//   server -> client   welcome: its own proof, and the longest value that it accepts; or error, and the end
//
// That is no more messages than if the token itself were sent.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "store/tcp/protocol.hpp"

namespace col::store::tcp {

inline constexpr std::string_view kProtocol = "col-store/";
inline constexpr std::string_view kGreetingStart = "col-store/2 ";
inline constexpr std::string_view kFullGreeting = "col-store/2 full\n";
// Also for the greeting of another version.
inline constexpr std::size_t kMaxGreetingBytes = 128;

// What both sides know about one connection.
struct Handshake {
  std::string_view token;
  std::string_view job;  // the client's
  std::string_view server_nonce;
};

std::string greeting(std::string_view server_nonce);
// The nonce of a greeting; nothing if `line` is not a greeting of this version.
std::optional<std::string_view> nonce_in_greeting(std::string_view line) noexcept;

// The message under number `id`.
std::string make_hello(std::uint64_t id, const Handshake& handshake, std::string_view client_nonce);
// The client's nonce; nothing if the client has not proven that it knows the token.
std::optional<std::string_view> check_hello(const Request& hello, const Handshake& handshake);

// The content of the answer to a hello.
std::string make_welcome(const Handshake& handshake, std::string_view client_nonce, std::size_t max_value_bytes);
// max_value_bytes; nothing if the server has not proven that it knows the token.
std::optional<std::size_t> check_welcome(std::string_view welcome, const Handshake& handshake,
                                         std::string_view client_nonce);

}  // namespace col::store::tcp
