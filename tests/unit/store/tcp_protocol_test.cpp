// Messages of the TCP store as bytes, and how they are cut out of a stream.
#include <string>
#include <vector>

#include "store/tcp/message_reader.hpp"
#include "store/tcp/protocol.hpp"
#include "support/catch.hpp"

using namespace col::store::tcp;
using namespace std::string_literals;
using Status = MessageReader::Status;

namespace {

bool operator==(const Request& a, const Request& b) {
  return a.type == b.type && a.id == b.id && a.key == b.key && a.value == b.value && a.expected == b.expected &&
         a.number == b.number;
}

std::vector<Request> requests() {
  return {{.type = RequestType::hello, .id = 1, .key = "job/0", .value = "nonce and proof"},
          {.type = RequestType::set, .id = 2, .key = "key", .value = "value"},
          {.type = RequestType::set, .id = 3},
          {.type = RequestType::get, .id = ~std::uint64_t{0}, .key = std::string_view("\0\xff", 2)},
          {.type = RequestType::wait, .id = 5, .key = "key"},
          {.type = RequestType::cancel, .id = 6, .number = 5},
          {.type = RequestType::add, .id = 7, .key = "key", .number = -1},
          {.type = RequestType::compare_set, .id = 8, .key = "k", .value = "new", .expected = "old"},
          {.type = RequestType::compare_set, .id = 9, .key = "k", .value = "new", .expected = ""},
          {.type = RequestType::compare_set, .id = 10, .key = "k", .value = "new"},
          {.type = RequestType::erase, .id = 11, .key = "key"},
          {.type = RequestType::num_keys, .id = 12}};
}

}  // namespace

TEST_CASE("tcp protocol: every request survives its bytes, whole and byte by byte", "[store][tcp]") {
  std::string stream;
  for (const Request& request : requests()) stream += encode(request);
  for (const std::size_t step : {stream.size(), std::size_t{1}, std::size_t{7}}) {
    MessageReader reader(1000);
    std::size_t seen = 0;
    for (std::size_t at = 0; at < stream.size(); at += step) {
      reader.feed(std::string_view(stream).substr(at, step));
      MessageReader::Message message;
      while (reader.next(message) == Status::complete) {
        const auto request = decode_request(message.header, message.body);
        REQUIRE(request);
        CHECK((*request == requests()[seen]));
        ++seen;
      }
    }
    CHECK(seen == requests().size());
    CHECK_FALSE(reader.in_message());
  }
}

TEST_CASE("tcp protocol: every answer survives its bytes", "[store][tcp]") {
  for (const Answer& answer : {Answer{.type = AnswerType::done, .id = 1}, Answer{.type = AnswerType::absent, .id = 2},
                               Answer{.type = AnswerType::value, .id = 3, .bytes = "value"},
                               Answer{.type = AnswerType::number, .id = 4, .number = -7},
                               Answer{.type = AnswerType::error, .bytes = "why", .code = col::ErrorCode::resource}}) {
    const std::string text = encode(answer);
    const Header header = decode_header(text);
    CHECK(header.body_bytes == text.size() - kHeaderBytes);
    const auto decoded = decode_answer(header, std::string_view(text).substr(kHeaderBytes));
    REQUIRE(decoded);
    CHECK((decoded->type == answer.type && decoded->id == answer.id && decoded->bytes == answer.bytes));
    CHECK((decoded->number == answer.number && decoded->code == answer.code));
  }
  CHECK(encode_value_header(3, 5) + "value" == encode(Answer{.type = AnswerType::value, .id = 3, .bytes = "value"}));
}

TEST_CASE("tcp protocol: a body that is cut, has too much, or is of no known type is no request", "[store][tcp]") {
  for (const Request& request : requests()) {
    const std::string text = encode(request);
    const Header header = decode_header(text);
    const std::string_view body = std::string_view(text).substr(kHeaderBytes);
    // Where the last field is the rest of the body, a cut one is another, shorter field.
    const bool fixed = request.type == RequestType::cancel;
    if (fixed) {
      CHECK_FALSE(decode_request(header, std::string(body) + "x"));
      CHECK_FALSE(decode_request(header, body.substr(1)));
    }
    Header other = header;
    for (const int type : {0, 10, 65, 255}) {
      other.type = static_cast<std::uint8_t>(type);
      CHECK_FALSE(decode_request(other, body));
    }
  }
  const auto type = [](RequestType t) { return Header{.type = static_cast<std::uint8_t>(t)}; };
  CHECK_FALSE(decode_request(type(RequestType::set), "\4\0\0\0key"s));
  CHECK_FALSE(decode_request(type(RequestType::set), "\377\377\377\377key"s));
  CHECK_FALSE(decode_request(type(RequestType::add), "1234567"));
  CHECK_FALSE(decode_request(type(RequestType::compare_set), "\2\0\0\0\0\0\0\0\0"s));
  CHECK_FALSE(decode_request(type(RequestType::compare_set), "\0\0\0\0\0\1\0\0\0x"s));
  CHECK_FALSE(decode_request(type(RequestType::get), std::string(kMaxKeyBytes + 1, 'k')));
  CHECK(decode_request(type(RequestType::get), std::string(kMaxKeyBytes, 'k')));
}

TEST_CASE("tcp protocol: a length field alone is never believed", "[store][tcp]") {
  Budget budget(100'000);
  MessageReader reader(50'000'000, &budget);
  MessageReader::Message message;
  reader.feed("\1\0\0\x40"s + std::string(9, '\2'));  // 1 GiB and one byte
  CHECK(reader.next(message) == Status::too_long);
  CHECK(budget.used() == 0);
}

TEST_CASE("tcp protocol: a body that the budget has no room for is skipped, and the next message read",
          "[store][tcp]") {
  Budget budget(100'000);
  MessageReader reader(1'000'000, &budget);
  const std::string large(200'000, 'v');
  const std::string stream = encode(Request{.type = RequestType::set, .id = 1, .key = "k", .value = large}) +
                             encode(Request{.type = RequestType::get, .id = 2, .key = "k"});
  std::vector<std::pair<Status, std::uint64_t>> seen;
  for (std::size_t at = 0; at < stream.size(); at += 10'000) {
    reader.feed(std::string_view(stream).substr(at, 10'000));
    MessageReader::Message message;
    for (Status status; (status = reader.next(message)) != Status::incomplete;)
      seen.emplace_back(status, message.header.id);
    CHECK(budget.used() == 0);
  }
  CHECK((seen == std::vector<std::pair<Status, std::uint64_t>>{{Status::no_room, 1}, {Status::complete, 2}}));
  // One that fits is charged for as long as it is not handed out.
  const std::string fits =
      encode(Request{.type = RequestType::set, .id = 3, .key = "k", .value = large.substr(0, 90'000)});
  MessageReader::Message message;
  reader.feed(std::string_view(fits).substr(0, 100));
  CHECK(reader.next(message) == Status::incomplete);
  CHECK(budget.used() > 90'000);
  reader.feed(std::string_view(fits).substr(100));
  CHECK(reader.next(message) == Status::complete);
  CHECK(reader.next(message) == Status::incomplete);
  CHECK(budget.used() == 0);
}
