// The protocol between client and server of the TCP store.
//
// First, each side proves who it is (handshake.hpp). Then the client sends requests. The server answers each request
// once, with the number of the request, and in no fixed order.
//
// A message is a header (body bytes: 4, type: 1, number: 8; little endian) and a body. The server answers a wait when
// its key is set. A cancel ends a wait and has no answer. The answer to the wait may already be on its way, so a client
// skips answers that it does not expect.
//
// Nothing here makes a system call, or allocates memory because of a length field.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <col/error.hpp>

namespace col::store::tcp {

inline constexpr std::size_t kHeaderBytes = 13;
inline constexpr std::size_t kMaxKeyBytes = std::size_t{64} << 10;
inline constexpr std::size_t kMaxTokenBytes = 512;

struct Header {
  std::uint32_t body_bytes = 0;
  std::uint8_t type = 0;
  std::uint64_t id = 0;
};
// Requires: bytes.size() >= kHeaderBytes.
Header decode_header(std::string_view bytes) noexcept;

enum class RequestType : std::uint8_t { hello = 1, set, get, wait, cancel, add, compare_set, erase, num_keys };

// The views belong to the sender, or point into the body that was decoded.
struct Request {
  RequestType type = RequestType::hello;
  std::uint64_t id = 0;
  std::string_view key = {};                      // num_keys: the prefix; hello: the job
  std::string_view value = {};                    // set, compare_set: what is desired; hello: nonce and proof
  std::optional<std::string_view> expected = {};  // compare_set
  std::int64_t number = 0;                        // add: the delta; cancel: the id of the wait
};
std::string encode(const Request& request);
// Nothing if the body is not such a request, or if its key is too long.
std::optional<Request> decode_request(const Header& header, std::string_view body) noexcept;

// The longest body of a request that carries values of `max_value_bytes`.
constexpr std::size_t max_request_bytes(std::size_t max_value_bytes) noexcept {
  return kMaxKeyBytes + 2 * max_value_bytes + 16;
}
inline constexpr std::size_t kMaxJobBytes = 1024;
// The longest message from a sender that has not proven that it knows the token.
inline constexpr std::size_t kMaxHelloBytes = kMaxJobBytes + 256;

enum class AnswerType : std::uint8_t { done = 65, value, absent, number, error };

struct Answer {
  AnswerType type = AnswerType::done;
  std::uint64_t id = 0;
  std::string_view bytes = {};           // value; error: the message
  std::int64_t number = 0;               // number
  ErrorCode code = ErrorCode::internal;  // error
};
std::string encode(const Answer& answer);
// The message of a value without the value itself, which follows it.
std::string encode_value_header(std::uint64_t id, std::size_t value_bytes);
std::optional<Answer> decode_answer(const Header& header, std::string_view body) noexcept;

}  // namespace col::store::tcp
