#include "store/tcp/protocol.hpp"

#include <algorithm>
#include <concepts>
#include <utility>

namespace col::store::tcp {
namespace {

template <std::unsigned_integral T>
void append(std::string& text, T value) {
  for (std::size_t i = 0; i < sizeof value; ++i) text += static_cast<char>(value >> (8 * i) & 0xff);
}

template <std::unsigned_integral T>
T load(std::string_view bytes) noexcept {
  T value = 0;
  for (std::size_t i = 0; i < sizeof value; ++i)
    value = static_cast<T>(value | static_cast<T>(static_cast<T>(static_cast<unsigned char>(bytes[i])) << (8 * i)));
  return value;
}

std::string header(std::size_t body_bytes, std::uint8_t type, std::uint64_t id, std::size_t reserved) {
  std::string text;
  text.reserve(kHeaderBytes + reserved);
  append(text, static_cast<std::uint32_t>(body_bytes));
  text += static_cast<char>(type);
  append(text, id);
  return text;
}

// Puts fields at the end of a message.
class Writer {
 public:
  explicit Writer(std::string header) noexcept : text_(std::move(header)) {}

  void byte(std::uint8_t value) { append(text_, value); }
  void number(std::int64_t value) { append(text_, static_cast<std::uint64_t>(value)); }
  void text(std::string_view value) {
    append(text_, static_cast<std::uint32_t>(value.size()));
    text_ += value;
  }
  void rest(std::string_view value) { text_ += value; }

  // The message, whose header now has the size of the body.
  std::string take() {
    std::string size;
    append(size, static_cast<std::uint32_t>(text_.size() - kHeaderBytes));
    return std::move(text_.replace(0, size.size(), size));
  }

 private:
  std::string text_;
};

// Takes fields off the front of a body; remembers when one was missing.
class Reader {
 public:
  explicit Reader(std::string_view body) noexcept : rest_(body) {}

  void byte(std::uint8_t& value) noexcept { value = load_next<std::uint8_t>(); }
  void number(std::int64_t& value) noexcept { value = static_cast<std::int64_t>(load_next<std::uint64_t>()); }
  void text(std::string_view& value) noexcept { value = take(load_next<std::uint32_t>()); }
  void rest(std::string_view& value) noexcept { value = take(rest_.size()); }
  bool complete() const noexcept { return good_ && rest_.empty(); }

 private:
  template <std::unsigned_integral T>
  T load_next() noexcept {
    const std::string_view bytes = take(sizeof(T));
    return good_ ? load<T>(bytes) : 0;
  }
  std::string_view take(std::size_t size) noexcept {
    if (!good_ || size > rest_.size()) {
      good_ = false;
      return {};
    }
    const std::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return taken;
  }

  std::string_view rest_;
  bool good_ = true;
};

// The fields of a body in their order, for both directions. False if there is no such message.
template <class Body>
bool fields(Request& request, Body& body) {
  switch (request.type) {
    case RequestType::hello:
    case RequestType::set:
      body.text(request.key);
      body.rest(request.value);
      return true;
    case RequestType::get:
    case RequestType::wait:
    case RequestType::erase:
    case RequestType::num_keys:
      body.rest(request.key);
      return true;
    case RequestType::cancel:
      body.number(request.number);
      return true;
    case RequestType::add:
      body.number(request.number);
      body.rest(request.key);
      return true;
    case RequestType::compare_set: {
      std::uint8_t is_set = request.expected ? 1 : 0;
      std::string_view expected = request.expected.value_or("");
      body.byte(is_set);
      body.text(request.key);
      body.text(expected);
      body.rest(request.value);
      if (is_set == 1) request.expected = expected;
      return is_set == 1 || (is_set == 0 && expected.empty());
    }
  }
  return false;
}

template <class Body>
bool fields(Answer& answer, Body& body) {
  switch (answer.type) {
    case AnswerType::done:
    case AnswerType::absent:
      return true;
    case AnswerType::value:
      body.rest(answer.bytes);
      return true;
    case AnswerType::number:
      body.number(answer.number);
      return true;
    case AnswerType::error: {
      auto code = static_cast<std::uint8_t>(answer.code);
      body.byte(code);
      body.rest(answer.bytes);
      answer.code = static_cast<ErrorCode>(code);
      return code <= static_cast<std::uint8_t>(ErrorCode::internal);
    }
  }
  return false;
}

template <class Message>
std::string encoded(Message message, std::size_t reserved) {
  Writer body(header(0, static_cast<std::uint8_t>(message.type), message.id, reserved));
  fields(message, body);
  return body.take();
}

template <class Message>
std::optional<Message> decoded(const Header& header, std::string_view bytes) noexcept {
  Message message{.type = static_cast<decltype(Message::type)>(header.type), .id = header.id};
  Reader body(bytes);
  if (!fields(message, body) || !body.complete()) return std::nullopt;
  return message;
}

}  // namespace

Header decode_header(std::string_view bytes) noexcept {
  return {.body_bytes = load<std::uint32_t>(bytes),
          .type = static_cast<std::uint8_t>(bytes[4]),
          .id = load<std::uint64_t>(bytes.substr(5))};
}

std::string encode(const Request& request) {
  constexpr std::size_t kMostOthers = 9;  // the bytes of lengths, flags and numbers
  return encoded(request,
                 kMostOthers + request.key.size() + request.value.size() + request.expected.value_or("").size());
}

std::optional<Request> decode_request(const Header& header, std::string_view body) noexcept {
  auto request = decoded<Request>(header, body);
  if (request && request->key.size() > kMaxKeyBytes) return std::nullopt;
  return request;
}

std::string encode(const Answer& answer) {
  return encoded(answer, std::max(sizeof answer.number, 1 + answer.bytes.size()));
}

std::string encode_value_header(std::uint64_t id, std::size_t value_bytes) {
  return header(value_bytes, static_cast<std::uint8_t>(AnswerType::value), id, 0);
}

std::optional<Answer> decode_answer(const Header& header, std::string_view body) noexcept {
  return decoded<Answer>(header, body);
}

}  // namespace col::store::tcp
