#include "store/tcp/protocol.hpp"

#include <concepts>

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

void append_text(std::string& body, std::string_view text) {
  append(body, static_cast<std::uint32_t>(text.size()));
  body += text;
}

// Takes fields off the front of a body; remembers when one was missing.
class Fields {
 public:
  explicit Fields(std::string_view body) noexcept : rest_(body) {}

  template <std::unsigned_integral T>
  T number() noexcept {
    const std::string_view bytes = take(sizeof(T));
    return good_ ? load<T>(bytes) : 0;
  }
  std::string_view text() noexcept { return take(number<std::uint32_t>()); }
  std::string_view rest() noexcept { return take(rest_.size()); }
  bool complete() const noexcept { return good_ && rest_.empty(); }

 private:
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

std::string header(std::size_t body_bytes, std::uint8_t type, std::uint64_t id, std::size_t reserved) {
  std::string text;
  text.reserve(kHeaderBytes + reserved);
  append(text, static_cast<std::uint32_t>(body_bytes));
  text += static_cast<char>(type);
  append(text, id);
  return text;
}

std::string message(std::uint8_t type, std::uint64_t id, std::string_view body) {
  return header(body.size(), type, id, body.size()).append(body);
}

std::string message_of(const Request& request, std::size_t body_bytes) {
  return header(body_bytes, static_cast<std::uint8_t>(request.type), request.id, body_bytes);
}

std::string encode_compare_set(const Request& request) {
  const std::string_view expected = request.expected.value_or("");
  std::string text = message_of(request, 9 + request.key.size() + expected.size() + request.value.size());
  text += request.expected ? '\1' : '\0';
  append_text(text, request.key);
  append_text(text, expected);
  return text.append(request.value);
}

}  // namespace

Header decode_header(std::string_view bytes) noexcept {
  return {.body_bytes = load<std::uint32_t>(bytes),
          .type = static_cast<std::uint8_t>(bytes[4]),
          .id = load<std::uint64_t>(bytes.substr(5))};
}

std::string encode(const Request& request) {
  switch (request.type) {
    case RequestType::hello:
    case RequestType::set: {
      std::string text = message_of(request, 4 + request.key.size() + request.value.size());
      append_text(text, request.key);
      return text.append(request.value);
    }
    case RequestType::add: {
      std::string text = message_of(request, 8 + request.key.size());
      append(text, static_cast<std::uint64_t>(request.number));
      return text.append(request.key);
    }
    case RequestType::cancel: {
      std::string text = message_of(request, 8);
      append(text, static_cast<std::uint64_t>(request.number));
      return text;
    }
    case RequestType::compare_set:
      return encode_compare_set(request);
    case RequestType::get:
    case RequestType::wait:
    case RequestType::erase:
    case RequestType::num_keys:
      break;
  }
  return message(static_cast<std::uint8_t>(request.type), request.id, request.key);
}

std::optional<Request> decode_request(const Header& header, std::string_view body) noexcept {
  Request request{.type = static_cast<RequestType>(header.type), .id = header.id};
  Fields fields(body);
  switch (request.type) {
    case RequestType::hello:
    case RequestType::set:
      request.key = fields.text();
      request.value = fields.rest();
      break;
    case RequestType::get:
    case RequestType::wait:
    case RequestType::erase:
    case RequestType::num_keys:
      request.key = fields.rest();
      break;
    case RequestType::cancel:
      request.number = static_cast<std::int64_t>(fields.number<std::uint64_t>());
      break;
    case RequestType::add:
      request.number = static_cast<std::int64_t>(fields.number<std::uint64_t>());
      request.key = fields.rest();
      break;
    case RequestType::compare_set: {
      const auto is_set = fields.number<std::uint8_t>();
      request.key = fields.text();
      const std::string_view expected = fields.text();
      request.value = fields.rest();
      if (is_set > 1 || (is_set == 0 && !expected.empty())) return std::nullopt;
      if (is_set == 1) request.expected = expected;
      break;
    }
    default:
      return std::nullopt;
  }
  if (!fields.complete() || request.key.size() > kMaxKeyBytes) return std::nullopt;
  return request;
}

std::string encode(const Answer& answer) {
  const auto type = static_cast<std::uint8_t>(answer.type);
  switch (answer.type) {
    case AnswerType::value:
      return message(type, answer.id, answer.bytes);
    case AnswerType::number: {
      std::string text = header(8, type, answer.id, 8);
      append(text, static_cast<std::uint64_t>(answer.number));
      return text;
    }
    case AnswerType::error: {
      std::string text = header(1 + answer.bytes.size(), type, answer.id, 1 + answer.bytes.size());
      text += static_cast<char>(answer.code);
      return text.append(answer.bytes);
    }
    case AnswerType::done:
    case AnswerType::absent:
      break;
  }
  return message(type, answer.id, {});
}

std::string encode_value_header(std::uint64_t id, std::size_t value_bytes) {
  return header(value_bytes, static_cast<std::uint8_t>(AnswerType::value), id, 0);
}

std::optional<Answer> decode_answer(const Header& header, std::string_view body) noexcept {
  Answer answer{.type = static_cast<AnswerType>(header.type), .id = header.id};
  Fields fields(body);
  switch (answer.type) {
    case AnswerType::done:
    case AnswerType::absent:
      break;
    case AnswerType::value:
      answer.bytes = fields.rest();
      break;
    case AnswerType::number:
      answer.number = static_cast<std::int64_t>(fields.number<std::uint64_t>());
      break;
    case AnswerType::error: {
      const auto code = fields.number<std::uint8_t>();
      if (code > static_cast<std::uint8_t>(ErrorCode::internal)) return std::nullopt;
      answer.code = static_cast<ErrorCode>(code);
      answer.bytes = fields.rest();
      break;
    }
    default:
      return std::nullopt;
  }
  if (!fields.complete()) return std::nullopt;
  return answer;
}

}  // namespace col::store::tcp
